package pages

import (
	"maps"
	"slices"
	"strings"

	"dispatcher/config"
)

// matchWords says which messages a route matches.
func matchWords(m *config.Match) string {
	var labels, hours []string
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		labels = append(labels, key+"="+m.Labels[key].String())
	}
	for i := range m.Hours {
		hours = append(hours, m.Hours[i].String())
	}
	var words []string
	for _, list := range []struct {
		name   string
		values []string
	}{
		{"prefix", m.Prefixes},
		{"country", m.Countries},
		{"tenant", m.Tenants},
		{"lane", m.Lanes},
		{"sender", m.Senders},
		{"hours", hours},
		{"label", labels},
	} {
		if len(list.values) > 0 {
			words = append(words, list.name+" "+strings.Join(list.values, ", "))
		}
	}
	if len(words) == 0 {
		return "all messages"
	}
	return strings.Join(words, "; ")
}

// ruleWords are what a route does besides choosing by weights, as sentences.
func ruleWords(r *config.Route) []string {
	var out []string
	if r.Sticky {
		out = append(out, "Sticky: a recipient stays on one channel.")
	}
	if r.Quiet != nil {
		out = append(out, quietWords(r.Quiet))
	}
	if r.NoReceipt != nil {
		out = append(out, "Without a receipt "+exactly(r.NoReceipt.After)+
			" after the answer, a copy goes to the next channel.")
	}
	if r.AllowedCountries != nil {
		out = append(out, "Only to the countries "+strings.Join(r.AllowedCountries, ", ")+".")
	}
	return out
}

func quietWords(q *config.Quiet) string {
	hours := make([]string, len(q.Hours))
	for i := range q.Hours {
		hours[i] = q.Hours[i].String()
	}
	clock, then := q.Zone.String(), "messages wait"
	if q.ByRecipient {
		clock = "the recipient's country"
	}
	if q.Next {
		then = "messages go to the next route"
	}
	return "Quiet " + strings.Join(hours, ", ") + ", by the clock of " + clock + ": " + then + "."
}
