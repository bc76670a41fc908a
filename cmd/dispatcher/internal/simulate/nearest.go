package simulate

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest says which of the known words a misspelt one may have meant.
func suggest(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

// nearest is the known word that is most like this one; empty when none is.
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}
