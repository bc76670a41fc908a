package settings

// nearest returns the candidate with the smallest edit distance to key, or nothing
// when even that one is more than a third of the key away.
func nearest(key string, candidates []string) string {
	best, bestDistance := "", len(key)/3+2
	for _, c := range candidates {
		if d := distance(key, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
