package simulate

import "strings"

// suggest says which of the known words a misspelt one may have meant.
func suggest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "known are " + strings.Join(known, ", ")
	}
	return "did you mean " + best + "?"
}

// distance is how many letters have to be added, left out or replaced (Levenshtein).
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
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
