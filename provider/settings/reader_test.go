package settings_test

import (
	"testing"

	"dispatcher/provider/settings"
)

func TestAnEntryThatStandsThereTwiceIsAFault(t *testing.T) {
	t.Parallel()
	r := settings.New(
		map[string]any{"files": []any{"a", "b", "a"}, "one": "a", "typed": []string{"a", "a"}}, nil)
	r.Texts("files")
	r.Texts("one")
	r.Texts("typed")
	if err := r.Err(); err == nil ||
		err.Error() != "files: \"a\" stands there twice\ntyped: \"a\" stands there twice" {
		t.Error(err)
	}
}

func TestAnUnknownSettingSaysWhichThereAre(t *testing.T) {
	t.Parallel()
	for want, asked := range map[string][]string{
		"colour: unknown setting; remove it, none belongs here": nil,
		"colour: unknown setting; known are from, window":       {"window", "from"},
		"colour: unknown setting; did you mean color?":          {"color", "from"},
	} {
		r := settings.New(map[string]any{"colour": "red"}, nil)
		for _, key := range asked {
			r.Take(key)
		}
		r.RefuseUnknown()
		if err := r.Err(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
