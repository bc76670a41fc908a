package config

import (
	"slices"
	"strings"
)

// readMatch reads what a route takes. Lists may be written as a single value, and their
// keys in the singular.
func readMatch(v value, known *scope) Match {
	f, ok := v.fields("prefixes", "prefix", "countries", "country", "tenants", "tenant", "lanes", "lane", "labels")
	if !ok {
		return Match{}
	}
	m := Match{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readWords(f, "countries", "country", checkLetters),
		Tenants:   readWords(f, "tenants", "tenant", nil),
		Lanes: readWords(f, "lanes", "lane", func(v value, s string) bool {
			if !slices.Contains(known.lanes, s) {
				v.fail("there is no lane %q; %s", s, v.r.suggest(s, known.lanes, "define it under lanes"))
			}
			return true
		}),
	}
	for i, c := range m.Countries {
		m.Countries[i] = strings.ToLower(c)
	}
	if labels, ok := f.get("labels"); ok {
		m.Labels = labels.labels()
	}
	return m
}

// readWords reads a list of texts under either of two keys. A list without members
// would look like "none" and mean "all", so it is refused.
func readWords(f fields, plural, singular string, check func(value, string) bool) []string {
	v, ok := f.get(plural)
	if other, both := f.get(singular); both && ok {
		other.fail("stands beside %s; keep %s", plural, plural)
	} else if both {
		v, ok = other, true
	}
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; remove the key to match all")
	}
	var out []string
	for _, item := range items {
		s, ok := item.text()
		if ok && (check == nil || check(item, s)) {
			out = append(out, s)
		}
	}
	return out
}
