package simulate

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest says which of the known words a misspelt one may have meant.
func suggest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "known are " + strings.Join(known, ", ")
	}
	return "did you mean " + best + "?"
}
