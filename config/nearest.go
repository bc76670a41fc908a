package config

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// suggest says "did you mean" with the known word nearest to a misspelt one, or the
// mend given when none is near.
func suggest(word string, known []string, otherwise string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return otherwise
}

// nearest returns the known word with the smallest edit distance, the first of equals,
// if at most a third of the letters differ (two letters of a short word); else "".
func nearest(word string, known []string) string {
	best, at := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < at {
			best, at = k, d
		}
	}
	if at >= len(word) {
		return "" // nothing of the word would be left
	}
	return best
}
