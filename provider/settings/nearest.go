package settings

import "github.com/agnivade/levenshtein"

// Nearest returns the known word that a misspelt one most likely means: the one with the smallest
// edit distance, the first of equals. It returns nothing when more than a third of the letters
// would differ, two letters of a short word, or when no letter would be left.
func Nearest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < least {
			best, least = k, d
		}
	}
	if least >= len(word) {
		return ""
	}
	return best
}
