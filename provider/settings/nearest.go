package settings

import "github.com/agnivade/levenshtein"

// nearest returns the candidate with the smallest edit distance to key, or nothing
// when even that one is more than a third of the key away.
func nearest(key string, candidates []string) string {
	best, bestDistance := "", len(key)/3+2
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(key, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}
