package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
	"dispatcher/selector"
)

// raw is the text of a scalar exactly as written, so that decimals keep every digit.
func (v value) raw(want string) (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag == "!!null" {
		v.fail("is %s; write %s", v.kind(), want)
		return "", false
	}
	return v.node.Value, true
}

// text reads a text that is not empty. Numbers are taken as written.
func (v value) text() (string, bool) {
	s, ok := v.raw("a text")
	if ok && strings.TrimSpace(s) == "" {
		v.fail("is empty; write a text or remove the key")
		return "", false
	}
	return s, ok
}

// checkName reports whether s can name a channel, route or lane.
func (v value) checkName(what, s string) bool {
	if isName(s, false) {
		return true
	}
	v.fail("%q cannot name a %s; use 1 to 64 letters, digits, dots, dashes and underscores", s,
		what)
	return false
}

// word reads one of a few words.
func (v value) word(what string, words []string) (string, bool) { return wordOf(v, what, words) }

// wordOf is word for a string type.
func wordOf[W ~string](v value, what string, of []W) (W, bool) {
	words := make([]string, len(of))
	for i, w := range of {
		words[i] = string(w)
	}
	s, ok := v.raw("one of " + strings.Join(words, ", "))
	switch {
	case !ok:
		return "", false
	case slices.Contains(words, s):
		return W(s), true
	default:
		v.fail("%s %q is unknown; %s", what, s, suggest(s, words, "use "+strings.Join(words,
			" or ")))
	}
	return "", false
}

// integer reads a whole number within bounds; 0 after a problem.
func (v value) integer(low, high int64) int64 {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	s, ok := v.raw(want)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		v.fail("%q is not %s", s, want)
		return 0
	}
	return n
}

// flag reads true or false.
func (v value) flag() bool {
	s, ok := v.raw("true or false")
	if ok && s != "true" && s != "false" {
		v.fail("%q is neither true nor false", s)
	}
	return s == "true"
}

// duration reads a duration within bounds, in Go's form, in whole days such as 2d, or 0.
func (v value) duration(low, high time.Duration) (time.Duration, bool) {
	s, ok := v.raw("a duration such as 30s, 10m or 24h")
	if !ok {
		return 0, false
	}
	d, err := parseDuration(s)
	switch {
	case err != nil:
		v.fail("%q is not a duration; write for example 30s, 10m or 24h", s)
	case d < low || d > high:
		v.fail("%s is out of bounds; choose a duration from %s to %s", s, low, high)
	default:
		return d, true
	}
	return 0, false
}

const day = 24 * time.Hour

// date reads a day, which begins at midnight in the zone, or a point in time.
func (v value) date(zone *time.Location) time.Time {
	s, ok := v.raw("a date such as 2026-12-01")
	if !ok {
		return time.Time{}
	}
	// Noon, because a day may have no midnight where clocks change.
	if noon, err := time.ParseInLocation(time.DateOnly+" 15", s+" 12", zone); err == nil {
		return admission.Day.Start(noon, zone)
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		v.fail("%q is not a date; write for example 2026-12-01, which begins at midnight in the "+
			"time zone of the document, or 2026-12-01T09:00:00Z", s)
	}
	return at.UTC()
}

func parseDuration(s string) (time.Duration, error) {
	if days, isDays := strings.CutSuffix(s, "d"); isDays {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * day, err
	}
	return time.ParseDuration(s)
}

// timezone reads the name of a zone. After a problem it is UTC, so that reading can go on.
func (v value) timezone() *time.Location {
	s, ok := v.text()
	if !ok {
		return time.UTC
	}
	zone, err := time.LoadLocation(s)
	if err != nil || s == "Local" {
		v.fail("there is no time zone %q; write a name such as Europe/London or UTC", s)
		return time.UTC
	}
	return zone
}

// label reads a text or a number.
func (v value) label() (selector.Value, bool) {
	s, ok := v.raw("a text or a number")
	if !ok {
		return selector.Value{}, false
	}
	switch v.node.Tag {
	case "!!int", "!!float":
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f-f != 0 { // NaN and infinities
			v.fail("%q is not a finite decimal number; write a number such as 9 or 0.5, or a "+
				"text in quotes", s)
			return selector.Value{}, false
		}
		return selector.NumberValue(f), true
	case "!!bool":
		v.fail(`%s is neither a text nor a number; write "%s" in quotes`, s, s)
		return selector.Value{}, false
	}
	return selector.TextValue(s), true
}

// labels reads a mapping of labels.
func (v value) labels() map[string]selector.Value {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	out := make(map[string]selector.Value, len(entries))
	for _, e := range entries {
		if l, ok := e.value.label(); ok {
			out[e.name] = l
		}
	}
	return out
}

// micros reads an exact, non-negative decimal amount of money.
func (v value) micros(most int64) (int64, bool) {
	s, ok := v.raw(`an amount such as "0.031"`)
	if !ok {
		return 0, false
	}
	m, err := parseMicros(s, most)
	if err != nil {
		v.fail(`%q %v; write an amount such as "0.031"`, s, err)
		return 0, false
	}
	return m, true
}
