package smpp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settingsReader takes typed values out of a decoded YAML map. It remembers which
// keys were asked for and collects every fault.
type settingsReader struct {
	settings map[string]any
	readFile func(string) ([]byte, error)
	asked    []string
	faults   []error
}

func (r *settingsReader) fail(key string, err error) {
	r.faults = append(r.faults, fmt.Errorf("%s: %w", key, err))
}

func (r *settingsReader) failf(key, format string, args ...any) {
	r.fail(key, fmt.Errorf(format, args...))
}

func (r *settingsReader) err() error { return errors.Join(r.faults...) }

// take returns the value of a key that is there and not null.
func (r *settingsReader) take(key string) (any, bool) {
	r.asked = append(r.asked, key)
	value, ok := r.settings[key]
	return value, ok && value != nil
}

func (r *settingsReader) text(key string) string {
	value, ok := r.take(key)
	if !ok {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case int, int64, uint64: // a sender such as 12345 needs no quotes
		return fmt.Sprint(v)
	}
	r.failf(key, "is no text")
	return ""
}

// texts takes a text or a list of texts.
func (r *settingsReader) texts(key string) []string {
	value, ok := r.take(key)
	if !ok {
		return nil
	}
	switch v := value.(type) {
	case string:
		return []string{v}
	case []string:
		return slices.Clone(v)
	case []any:
		list := make([]string, 0, len(v))
		for _, entry := range v {
			if s, ok := entry.(string); ok {
				list = append(list, s)
			}
		}
		if len(list) == len(v) {
			return list
		}
	}
	r.failf(key, "is neither a text nor a list of texts")
	return nil
}

func (r *settingsReader) flag(key string) bool {
	value, ok := r.take(key)
	if !ok {
		return false
	}
	switch v := value.(type) {
	case bool:
		return v
	case string: // "on" and "off" are texts in YAML 1.2
		switch v {
		case "on", "true":
			return true
		case "off", "false":
			return false
		}
	}
	r.failf(key, "is neither true nor false")
	return false
}

// integer returns zero for a key that is absent.
func (r *settingsReader) integer(key string, low, high int) int {
	value, ok := r.take(key)
	if !ok {
		return 0
	}
	n, ok := asInt(value)
	if !ok {
		r.failf(key, "is no whole number")
		return 0
	}
	if err := between(key, n, low, high); err != nil {
		r.faults = append(r.faults, err)
	}
	return n
}

func (r *settingsReader) octet(key string) *byte {
	value, ok := r.take(key)
	if !ok {
		return nil
	}
	n, ok := asInt(value)
	if !ok || n < 0 || n > math.MaxUint8 {
		r.failf(key, "is no number from 0 to 255")
		return nil
	}
	b := byte(n)
	return &b
}

// duration returns zero, that is the default, for a key that is absent; a zero that
// is written is refused.
func (r *settingsReader) duration(key string) time.Duration {
	value, ok := r.take(key)
	if !ok {
		return 0
	}
	d, isDuration := value.(time.Duration)
	if text, isText := value.(string); isText {
		var err error
		d, err = time.ParseDuration(text)
		isDuration = err == nil
	}
	if !isDuration || d <= 0 {
		r.failf(key, "is no positive duration such as 30s")
		return 0
	}
	return d
}

// file returns the content of the file that the key names. The error does not show
// content.
func (r *settingsReader) file(key string) []byte {
	path := r.text(key)
	if path == "" {
		return nil
	}
	content, err := r.readFile(path)
	if err != nil {
		r.fail(key, err)
		return nil
	}
	if len(content) == 0 {
		r.failf(key, "%s is empty", path)
	}
	return content
}

// refuseUnknown faults every key that nobody asked for.
func (r *settingsReader) refuseUnknown() {
	for _, key := range slices.Sorted(maps.Keys(r.settings)) {
		if slices.Contains(r.asked, key) {
			continue
		}
		if key == "password" {
			r.failf(key, "a secret does not belong into the routing document; put it into a file and name that as password_file")
			continue
		}
		if near := nearest(key, r.asked); near != "" {
			r.failf(key, "unknown setting; did you mean %s?", near)
			continue
		}
		r.failf(key, "unknown setting; known are %s", strings.Join(slices.Sorted(slices.Values(r.asked)), ", "))
	}
}

func asInt(value any) (int, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case int64:
		return int(v), true
	case uint64:
		return int(v), v <= math.MaxInt
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.Atoi(v)
		return n, err == nil
	}
	return 0, false
}

// asMap accepts the map types that YAML decoders produce; keys become texts.
func asMap(value any) (map[string]any, bool) {
	switch v := value.(type) {
	case map[string]any:
		return v, true
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, entry := range v {
			m[fmt.Sprint(k)] = entry
		}
		return m, true
	}
	return nil, false
}

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
