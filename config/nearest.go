package config

import "fmt"

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
		if d := distance(word, k, at); d < at {
			best, at = k, d
		}
	}
	if at >= len(word) {
		return "" // nothing of the word would be left
	}
	return best
}

// distance is the Levenshtein distance of two words in bytes, or at least limit when it
// is not below that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
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
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
