package simulate

import (
	"strings"

	"dispatcher/provider/settings"
)

// suggest says which of the known words a misspelt one may have meant.
func suggest(word string, known []string) string {
	if best := settings.Nearest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "known are " + strings.Join(known, ", ")
}
