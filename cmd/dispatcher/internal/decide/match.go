package decide

import (
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/selector"
)

// route finds the first route that takes the message; nil when none does.
func (r *Routing) route(m *envelope.Message, lane string) *Route {
	country := ""
	for i := range r.Routes {
		match := &r.Routes[i].Match
		if len(match.Countries) > 0 && country == "" {
			country = r.Country(m.To)
		}
		if fits(match, m, lane, country) {
			return &r.Routes[i]
		}
	}
	return nil
}

// Place finds a channel among the members of a route; -1 when it is none, or there is
// no route.
func (r *Routing) Place(route *Route, channel string) int {
	if route == nil {
		return -1
	}
	return slices.IndexFunc(route.Members, func(c int) bool { return r.Channels[c].Name == channel })
}

func fits(m *config.Match, msg *envelope.Message, lane, country string) bool {
	return oneOf(m.Tenants, msg.Tenant) &&
		oneOf(m.Lanes, lane) &&
		oneOf(m.Countries, country) &&
		beginsWithOne(m.Prefixes, msg.To) &&
		hasAll(m.Labels, msg.Labels)
}

func oneOf(wanted []string, is string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, is)
}

func beginsWithOne(prefixes []string, number string) bool {
	if len(prefixes) == 0 {
		return true
	}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(number, p) })
}

func hasAll(wanted, has map[string]selector.Value) bool {
	for key, value := range wanted {
		if got, ok := has[key]; !ok || got != value {
			return false
		}
	}
	return true
}
