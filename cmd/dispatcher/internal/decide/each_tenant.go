package decide

import (
	"cmp"
	"slices"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// eachTenant are the limits that every tenant has separately on a channel, or over all channels.
type eachTenant struct {
	name    string // of the channel; empty over all
	channel int    // of the routing; -1 over all channels
	limits  []admission.Limit
}

// addEach indexes the limits of each tenant of one table.
func (si *scopeIndex) addEach(s *scopeTable, n *narrower) {
	if si.each == nil {
		si.each = map[string]*eachTenant{}
	}
	s.each = &eachTenant{name: n.Channel, channel: n.channel, limits: n.limits}
	si.each[n.Channel] = s.each
}

// completeTenants adds the limits of each tenant to tenants that have limits of their own, except
// for windows and units that those already limit.
func (si *scopeIndex) completeTenants() {
	for i := range si.narrower {
		n := &si.narrower[i]
		each := si.each[n.Channel]
		if each == nil || n.Scope.Tenant == "" || n.Scope.Each() {
			continue
		}
		for k := range each.limits {
			own := each.limits[k].Own(n.Scope.Tenant)
			if !slices.ContainsFunc(n.limits, func(l admission.Limit) bool {
				return l.Key() == own.Key()
			}) {
				n.limits = append(n.limits, own)
			}
		}
	}
}

// scopes are the scopes of a routing, plus those of tenants to whom only the limits of each tenant
// apply. The latter are made when a message of such a tenant is met. Their places follow those of
// the index, and they belong to one claim.
type scopes struct {
	*scopeIndex
	made   []narrower
	placed map[ledger.ScopeRef]int // the scopes in made
}

// scopes returns the scopes of the routing, for one claim.
func (r *Routing) scopes() scopes { return scopes{scopeIndex: r.scopeIndex()} }

// at is the scope at a place.
func (sc *scopes) at(place int) *narrower {
	if place < len(sc.narrower) {
		return &sc.narrower[place]
	}
	return &sc.made[place-len(sc.narrower)]
}

// place is the place of a scope; false when no limit has it.
func (sc *scopes) place(ref ledger.ScopeRef) (place int, known bool) {
	if place, known = sc.places[ref]; known || sc.each == nil || ref.Scope.Tenant == "" {
		return place, known
	}
	if each := sc.each[ref.Channel]; each != nil {
		return sc.tenant(each, ref.Scope.Tenant), true
	}
	return 0, false
}

// tenant is the place of the scope of a tenant to whom only the limits of each tenant apply.
func (sc *scopes) tenant(each *eachTenant, tenant string) int {
	ref := ledger.ScopeRef{Channel: each.name, Scope: admission.Scope{Tenant: tenant}}
	if place, known := sc.placed[ref]; known {
		return place
	}
	n := narrower{ScopeRef: ref, text: ref.Scope.String(), channel: each.channel}
	for i := range each.limits {
		n.limits = append(n.limits, each.limits[i].Own(tenant))
	}
	if sc.placed == nil {
		sc.placed = map[ledger.ScopeRef]int{}
	}
	place := len(sc.narrower) + len(sc.made)
	sc.made, sc.placed[ref] = append(sc.made, n), place
	return place
}

// madeFor appends the places of a tenant's scopes on a channel, and over all channels, that come
// only from the limits of each tenant.
func (sc *scopes) madeFor(dst []int, c int, tenant string) []int {
	for _, s := range [...]*scopeTable{sc.on[c], sc.over} {
		if s == nil || s.each == nil || tenant == "" {
			continue
		}
		if _, own := s.tenants[tenant]; !own {
			dst = append(dst, sc.tenant(s.each, tenant))
		}
	}
	return dst
}

// inOrder sorts places in the order in which claims lock their scopes, and drops duplicates.
func (sc *scopes) inOrder(places []int) []int {
	if len(sc.made) == 0 {
		slices.Sort(places)
	} else {
		slices.SortFunc(places, func(a, b int) int {
			m, n := sc.at(a), sc.at(b)
			return cmp.Or(cmp.Compare(m.Channel, n.Channel), cmp.Compare(m.text, n.text))
		})
	}
	return slices.Compact(places)
}

// DocumentedLimit is the key under which the document has a limit of a channel, or over all
// channels. For a tenant without limits of its own, that is the limit of each tenant.
func (r *Routing) DocumentedLimit(channel string, k admission.Key) admission.Key {
	limits := r.Limits
	if c := r.Channel(channel); c >= 0 {
		limits = r.Channels[c].Limits
	}
	for _, each := range []bool{false, true} {
		documented := k
		if each && k.Scope.Tenant != "" {
			documented.Scope.Tenant = admission.EachTenant
		}
		if slices.ContainsFunc(limits, func(l admission.Limit) bool {
			return l.Key() == documented
		}) {
			return documented
		}
	}
	return k
}
