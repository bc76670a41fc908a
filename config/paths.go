package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dispatcher/selector"
)

// pathValue is one value of a routing with the path that leads to it.
type pathValue struct {
	path  string
	text  string // for comparison
	shown string // for display
	// standard marks a value that the document need not state.
	standard bool
	// isOrder marks a list whose members have separate paths; only their order counts.
	isOrder bool
	order   []string
}

type pathKey struct {
	path    string
	isOrder bool
}

func (v *pathValue) key() pathKey { return pathKey{v.path, v.isOrder} }

// silent reports whether the value is not shown when only one side has it.
func (v *pathValue) silent() bool { return v.standard || v.isOrder }

// paths collects the values below one path.
type paths struct {
	all  *[]pathValue
	path string
}

// plainStep is a step of a path that needs no quotes.
var plainStep = regexp.MustCompile(`^[A-Za-z0-9_+-]+$`)

// below is the path of a key or name below this one. A name with other characters than plainStep
// allows, such as a dot, is quoted, so that no two paths are the same.
func (p paths) below(names ...string) paths {
	for _, name := range names {
		if !plainStep.MatchString(name) {
			name = strconv.Quote(name)
		}
		if p.path != "" {
			name = p.path + "." + name
		}
		p.path = name
	}
	return p
}

// set adds the value at this path.
func (p paths) set(text string) { p.add(pathValue{text: text, shown: text}) }

// setDefault adds a value; standard is its default.
func (p paths) setDefault(text, standard string) {
	p.add(pathValue{text: text, shown: text, standard: text == standard})
}

// setOrder adds the order of names.
func (p paths) setOrder(names []string) { p.add(pathValue{isOrder: true, order: names}) }

// setLabels adds texts and numbers by name.
func (p paths) setLabels(labels map[string]selector.Value) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		v := labels[name]
		if v.IsNumber {
			p.below(name).set(v.String())
		} else {
			p.below(name).set(plain(v.Text))
		}
	}
}

// setWords adds a list whose order has no meaning.
func (p paths) setWords(words []string) {
	if len(words) == 0 {
		return
	}
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = plain(w)
	}
	slices.Sort(shown)
	p.set(strings.Join(shown, ", "))
}

// setAny adds a setting of an adapter: a text, a number, a list or a mapping.
func (p paths) setAny(v any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.below(name).setAny(v[name], secret || secretKey.MatchString(name))
		}
		p.setEmpty(len(v), "{}")
	case []any:
		for i, item := range v {
			paths{all: p.all, path: p.path + "[" + strconv.Itoa(i) + "]"}.setAny(item, secret)
		}
		p.setEmpty(len(v), "[]")
	default:
		text := settingText(v)
		shown := text
		if strings.Contains(text, "://") {
			shown = RedactConnection(text)
		}
		if secret {
			shown = Hidden
		}
		p.add(pathValue{text: text, shown: shown})
	}
}

// setEmpty adds an empty list or mapping, so that it differs from a missing one.
func (p paths) setEmpty(size int, text string) {
	if size == 0 {
		p.set(text)
	}
}

func (p paths) add(added pathValue) {
	added.path = p.path
	*p.all = append(*p.all, added)
}

// settingText writes a scalar such that a text differs from a number of the same digits.
func settingText(v any) string {
	switch v := v.(type) {
	case string:
		return plain(v)
	case float64:
		if s := strconv.FormatFloat(v, 'g', -1, 64); strings.ContainsAny(s, ".e") {
			return s
		}
		return strconv.FormatFloat(v, 'f', 1, 64)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// plain writes a text as the document would, quoted where it could be taken for something else.
func plain(s string) string {
	_, notNumber := strconv.ParseFloat(s, 64)
	unprintable := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	if s == "" || s != strings.TrimSpace(s) || unprintable || notNumber == nil ||
		strings.ContainsAny(s, `,"[]{}`) || slices.Contains([]string{"true", "false", "null", "~"},
		s) {
		return strconv.Quote(s)
	}
	return s
}

// period writes a duration without the units that are zero.
func period(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func number[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// amount writes micros as a decimal with at least two decimals.
func amount(micros int64) string { return decimal(micros, 6) }

// decimal writes units of 10^-digits as an exact decimal with at least two decimals.
func decimal(units int64, digits int) string {
	one := pow10(digits)
	fraction := strings.TrimRight(fmt.Sprintf("%0*d", digits, units%one), "0")
	return fmt.Sprintf("%d.%s", units/one, fraction+strings.Repeat("0", max(2-len(fraction), 0)))
}
