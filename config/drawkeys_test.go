package config_test

import (
	"slices"
	"strings"
	"testing"

	"dispatcher/config"
	"dispatcher/selector"
)

func TestAddedKeyDrawsAndOldKeysStay(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("ab", selector.KeySize)
	for _, old := range []string{
		config.NewDrawKey(),
		key,
		"# since May\r\n\r\n" + key + "\r\n  " + strings.Repeat("CD", selector.KeySize) + "  \r\n",
		"\n\n" + key + "\n# no line break at the end",
	} {
		before, err := config.ParseDrawKeys("draw.key", old)
		if err != nil {
			t.Fatal(err)
		}
		text := config.AddDrawKey(old)
		after, err := config.ParseDrawKeys("draw.key", text)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(after[1:], before) || slices.Contains(before, after[0]) {
			t.Errorf("keys %v became %v", before, after)
		}
		if !strings.HasSuffix(text, old) {
			t.Errorf("the old text was changed")
		}
	}
}

func TestKeyAddedToNothingIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	one, other := config.AddDrawKey(""), config.AddDrawKey("")
	if keys, err := config.ParseDrawKeys("draw.key", one); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, error %v", len(keys), err)
	}
	if one == other {
		t.Error("two new keys are the same")
	}
}
