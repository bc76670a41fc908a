package settings_test

import (
	"testing"

	"dispatcher/provider/settings"
)

func TestNearestIsTheWordThatIsMostLikelyMeant(t *testing.T) {
	t.Parallel()
	known := []string{"weights", "wait", "mode", "match", "id"}
	for word, want := range map[string]string{
		"weihgts": "weights", "weight": "weights", "wiat": "wait", "moed": "mode", "mod": "mode",
		"channels": "", "xy": "", "of": "", "": "", "w": "",
	} {
		if got := settings.Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
