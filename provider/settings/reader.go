// Package settings reads the settings of one channel from the routing document: a map of plain
// values that only the channel's adapter understands.
//
// A Reader collects every fault under its key, so that an operator sees all of them at once, and
// suggests the nearest known key for an unknown one. No fault shows a secret.
package settings

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

// Reader reads typed values from a decoded YAML map. It records which keys were read and collects
// every fault. A method returns the zero value for a key that is absent or null, and for one with a
// fault. It is not safe for concurrent use.
type Reader struct {
	settings map[string]any
	readFile func(string) ([]byte, error)
	asked    []string
	faults   []error
}

// New returns a reader of settings. readFile reads the files that they name.
func New(settings map[string]any, readFile func(string) ([]byte, error)) *Reader {
	return &Reader{settings: settings, readFile: readFile}
}

// Fail records a fault of a key.
func (r *Reader) Fail(key string, err error) {
	r.faults = append(r.faults, fmt.Errorf("%s: %w", key, err))
}

// Failf records a fault of a key, which reads "key: format".
func (r *Reader) Failf(key, format string, args ...any) {
	r.Fail(key, fmt.Errorf(format, args...))
}

// Err joins all faults; nil when there is none.
func (r *Reader) Err() error { return errors.Join(r.faults...) }

// Take returns the value of a key that is present and not null.
func (r *Reader) Take(key string) (any, bool) {
	r.asked = append(r.asked, key)
	value, ok := r.settings[key]
	return value, ok && value != nil
}

// Text reads a text. A number needs no quotes where a text is expected.
func (r *Reader) Text(key string) string {
	value, ok := r.Take(key)
	if !ok {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case int, int64, uint64: // a sender such as 12345 needs no quotes
		return fmt.Sprint(v)
	}
	r.Failf(key, "is not text")
	return ""
}

// Texts reads a text or a list of different texts.
func (r *Reader) Texts(key string) []string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	switch v := value.(type) {
	case string:
		return []string{v}
	case []string:
		return r.once(key, slices.Clone(v))
	case []any:
		list := make([]string, 0, len(v))
		for _, entry := range v {
			if s, ok := entry.(string); ok {
				list = append(list, s)
			}
		}
		if len(list) == len(v) {
			return r.once(key, list)
		}
	}
	r.Failf(key, "is neither a text nor a list of texts")
	return nil
}

// once reports the second of equal entries, which is probably a mistake.
func (r *Reader) once(key string, list []string) []string {
	for i, entry := range list {
		if slices.Contains(list[:i], entry) {
			r.Failf(key, "%q stands there twice", entry)
		}
	}
	return list
}

// Flag reads true or false.
func (r *Reader) Flag(key string) bool {
	value, ok := r.Take(key)
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
	r.Failf(key, "is neither true nor false")
	return false
}

// Integer reads a whole number from low to high.
func (r *Reader) Integer(key string, low, high int) int {
	value, ok := r.Take(key)
	if !ok {
		return 0
	}
	n, ok := asInt(value)
	if !ok {
		r.Failf(key, "is not a whole number")
		return 0
	}
	if n < low || n > high {
		r.Failf(key, "%d is not between %d and %d", n, low, high)
	}
	return n
}

// Octet reads a number from 0 to 255; nil when there is none.
func (r *Reader) Octet(key string) *byte {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	n, ok := asInt(value)
	if !ok || n < 0 || n > math.MaxUint8 {
		r.Failf(key, "is not a number from 0 to 255")
		return nil
	}
	b := byte(n)
	return &b
}

// Duration reads a positive duration. Zero would mean the default, so an explicit zero is refused.
func (r *Reader) Duration(key string) time.Duration {
	value, ok := r.Take(key)
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
		r.Failf(key, "is not a positive duration such as 30s")
		return 0
	}
	return d
}

// File returns the content of the file that the key names. The error does not show
// content.
func (r *Reader) File(key string) []byte {
	path := r.Text(key)
	if path == "" {
		return nil
	}
	content, err := r.readFile(path)
	if err != nil {
		r.Fail(key, err)
		return nil
	}
	if len(content) == 0 {
		r.Failf(key, "%s is empty", path)
	}
	return content
}

// RefuseUnknown reports every key that was not read.
func (r *Reader) RefuseUnknown() {
	for _, key := range slices.Sorted(maps.Keys(r.settings)) {
		if slices.Contains(r.asked, key) {
			continue
		}
		if key == "password" {
			r.Failf(
				key, "a secret does not belong into the routing document; "+
					"put it into a file and name that as password_file")
			continue
		}
		if near := Nearest(key, r.asked); near != "" {
			r.Failf(key, "unknown setting; did you mean %s?", near)
			continue
		}
		if len(r.asked) == 0 {
			r.Failf(key, "unknown setting; remove it, none belongs here")
			continue
		}
		r.Failf(key, "unknown setting; known are %s",
			strings.Join(slices.Sorted(slices.Values(r.asked)), ", "))
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

// Map accepts the map types that YAML decoders produce; keys become texts.
func Map(value any) (map[string]any, bool) {
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

// Choose reads a setting with a fixed set of words; if it is absent, the result is the zero value.
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
