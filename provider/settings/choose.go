package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Choose reads a setting whose value is one of a few words; absent, it is the zero value.
func Choose[T any](r *Reader, key string, words map[string]T) T {
	var zero T
	value, ok := r.Take(key)
	if !ok {
		return zero
	}
	word := strings.TrimSpace(fmt.Sprint(value))
	if f, isFloat := value.(float64); isFloat {
		word = strconv.FormatFloat(f, 'f', 1, 64) // 5.0 without quotes
	}
	if v, known := words[word]; known {
		return v
	}
	r.Failf(key, "%q is none of %s", word, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
	return zero
}
