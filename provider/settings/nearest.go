package settings

import "github.com/agnivade/levenshtein"

// Nearest returns the known word that a misspelt one most likely means: the one with the smallest
// edit distance, the first of equals. It returns nothing if the distance is above two and above a
// third of the word's length, or if no letter of the word would be left.
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
