package config

import (
	"maps"
	"slices"
	"strings"
)

// readCountryGroups reads the named groups of countries. A group's name may be used wherever the
// document lists countries.
func readCountryGroups(top fields) map[string][]string {
	v, ok := top.get("country_groups")
	if !ok {
		return nil
	}
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	out := make(map[string][]string, len(entries))
	for _, e := range entries {
		e.value.checkName("group of countries", e.name)
		if isCountry(e.name) {
			e.value.fail("%q is the code of a country; give the group another name", e.name)
		}
		items := e.value.items()
		if len(items) == 0 {
			e.value.fail("is empty; list the countries of the group, such as [DE, FR]")
		}
		var members []string
		for _, item := range items {
			if s, ok := item.text(); ok && checkCountry(item, s) {
				members = append(members, strings.ToLower(s))
			}
		}
		slices.Sort(members)
		out[e.name] = slices.Compact(members)
	}
	return out
}

// readCountries reads a list of countries under either of its keys, in lower case. The name of a
// group is replaced by its members.
func readCountries(f fields, plural, singular string) []string {
	groups := f.of.r.countryGroups
	listed := readWords(f, plural, singular, func(v value, s string) bool {
		return checkCountryOrGroup(v, s, groups)
	})
	return withMembers(listed, groups)
}

func checkCountryOrGroup(v value, s string, groups map[string][]string) bool {
	if _, isGroup := groups[s]; isGroup || isCountry(s) {
		return true
	}
	v.fail("%q %s", s, notACountryOrGroup(s, groups))
	return false
}

// withMembers replaces the names of groups by their members, and drops duplicates.
func withMembers(listed []string, groups map[string][]string) []string {
	var out []string
	for _, s := range listed {
		members, isGroup := groups[s]
		if !isGroup {
			members = []string{strings.ToLower(s)}
		}
		for _, country := range members {
			if !slices.Contains(out, country) {
				out = append(out, country)
			}
		}
	}
	return out
}

// notACountryOrGroup says what to write instead of a word.
func notACountryOrGroup(s string, groups map[string][]string) string {
	if len(groups) == 0 || len(s) == 2 {
		return notACountry(s)
	}
	return "is neither a country nor a group of country_groups; " +
		suggest(s, slices.Sorted(maps.Keys(groups)), "write two letters, such as GB, or a group")
}

func pathsOfCountryGroups(p paths, groups map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		p.below(name).setWords(groups[name])
	}
}
