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

func TestAnAppendedKeyDrawsNothingUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	one, other := strings.Repeat("ab", selector.KeySize), strings.Repeat("CD", selector.KeySize)
	for _, old := range []string{
		config.NewDrawKey(),
		one,
		"# since May\r\n\r\n" + one + "\r\n  # older\r\n  " + other + "  \r\n",
		"\n\n" + one + "\n" + other + "\n# no line break at the end",
	} {
		before, err := config.ParseDrawKeys("draw.key", old)
		if err != nil {
			t.Fatal(err)
		}
		text, added, err := config.AppendDrawKey(old)
		if err != nil {
			t.Fatal(err)
		}
		appended, err := config.ParseDrawKeys("draw.key", text)
		if err != nil || !slices.Equal(appended, slices.Insert(slices.Clone(before), 1, added)) {
			t.Errorf("keys %d became %d, %v", len(before), len(appended), err)
		}
		text, err = config.PromoteDrawKey(text, added.ID())
		if err != nil {
			t.Fatal(err)
		}
		promoted, err := config.ParseDrawKeys("draw.key", text)
		if err != nil || !slices.Equal(promoted, slices.Insert(slices.Clone(before), 0, added)) {
			t.Errorf("promotion gave %d keys, %v", len(promoted), err)
		}
		if again, err := config.PromoteDrawKey(text, added.ID()); err != nil || again != text {
			t.Errorf("promoting the first key again changed the text: %v", err)
		}
		if comments(text) != comments(old) {
			t.Errorf("the comments were changed")
		}
	}
}

// comments returns the lines of a key file that hold no key.
func comments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestOnlyAKeyOfTheFileIsPromoted(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ab", selector.KeySize)
	if got, err := config.PromoteDrawKey(text, "12345678"); err == nil || got != "" ||
		strings.Contains(err.Error(), "abab") {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := config.AppendDrawKey("# nothing\n"); err == nil {
		t.Error("AppendDrawKey accepted a text without a key")
	}
}
