package decide

import (
	"cmp"
	"maps"
	"slices"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// scopeIndex finds the limits that count a message: those of each channel as a whole, and the
// narrower ones of tenants and prefixes. The cost per message does not depend on the number of
// scopes: one look-up for its tenant, and one for each length of prefix.
type scopeIndex struct {
	own      [][]admission.Limit // by channel: those of the whole channel
	narrower []narrower          // ascending by channel and scope text, as claims lock them
	places   map[ledger.ScopeRef]int
	over     *scopeTable   // over all channels; nil when there are none
	on       []*scopeTable // by channel; nil where there are none
	// each has the limits of each tenant by the name of their channel; nil when there are none.
	each map[string]*eachTenant
}

// narrower is a scope that has limits.
type narrower struct {
	ledger.ScopeRef
	text    string // of the scope
	channel int    // of the routing; -1 over all channels
	limits  []admission.Limit
}

// scopeTable finds the places of one channel's scopes among scopeIndex.narrower.
type scopeTable struct {
	tenants  map[string]int
	prefixes map[string]int
	lengths  []int       // of the prefixes, ascending and distinct
	each     *eachTenant // nil when there are none
}

// newScopeIndex indexes the limits of a routing.
func newScopeIndex(r *Routing) *scopeIndex {
	s := &scopeIndex{
		own: make([][]admission.Limit, len(r.Channels)), on: make([]*scopeTable, len(r.Channels)),
	}
	found := map[ledger.ScopeRef]*narrower{}
	note := func(channel int, name string, limit *admission.Limit) {
		ref := ledger.ScopeRef{Channel: name, Scope: limit.Scope}
		if found[ref] == nil {
			found[ref] = &narrower{ScopeRef: ref, text: limit.Scope.String(), channel: channel}
		}
		found[ref].limits = append(found[ref].limits, *limit)
	}
	for i := range r.Limits {
		note(-1, "", &r.Limits[i])
	}
	for c := range r.Channels {
		ch := &r.Channels[c]
		for i := range ch.Limits {
			if limit := &ch.Limits[i]; limit.Scope == (admission.Scope{}) {
				s.own[c] = append(s.own[c], *limit)
			} else {
				note(c, ch.Name, limit)
			}
		}
	}
	s.list(found)
	return s
}

// list puts the scopes into their order and fills the tables.
func (si *scopeIndex) list(found map[ledger.ScopeRef]*narrower) {
	refs := slices.SortedFunc(maps.Keys(found), func(a, b ledger.ScopeRef) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(found[a].text, found[b].text))
	})
	si.narrower, si.places = make([]narrower, len(refs)), make(map[ledger.ScopeRef]int, len(refs))
	for place, ref := range refs {
		n := found[ref]
		si.narrower[place], si.places[ref] = *n, place
		table := &si.over
		if n.channel >= 0 {
			table = &si.on[n.channel]
		}
		if *table == nil {
			*table = &scopeTable{tenants: map[string]int{}, prefixes: map[string]int{}}
		}
		(*table).add(ref.Scope, place)
		if ref.Scope.Each() {
			si.addEach(*table, n)
		}
	}
	si.completeTenants()
}

func (s *scopeTable) add(scope admission.Scope, place int) {
	if scope.Tenant != "" {
		s.tenants[scope.Tenant] = place
		return
	}
	s.prefixes[scope.Prefix] = place
	if at, known := slices.BinarySearch(s.lengths, len(scope.Prefix)); !known {
		s.lengths = slices.Insert(s.lengths, at, len(scope.Prefix))
	}
}

// find appends the places of the scopes of a table that count a message of this tenant to this
// number.
func (sc *scopes) find(dst []int, s *scopeTable, tenant, number string) []int {
	if s == nil {
		return dst
	}
	if tenant != "" {
		if place, ok := s.tenants[tenant]; ok {
			dst = append(dst, place)
		} else if s.each != nil {
			dst = append(dst, sc.tenant(s.each, tenant))
		}
	}
	for _, n := range s.lengths {
		if n > len(number) {
			break
		}
		if place, ok := s.prefixes[number[:n]]; ok {
			dst = append(dst, place)
		}
	}
	return dst
}

// covering appends the places of the scopes that count a task on any member of its route. All of
// them are locked before the decision.
func (sc *scopes) covering(dst []int, t *Task) []int {
	if len(sc.narrower) == 0 || t.Route == nil {
		return dst
	}
	dst = sc.find(dst, sc.over, t.Row.Tenant, t.msg.To)
	for _, c := range t.Route.Members {
		if sc.on[c] != nil {
			dst = sc.find(dst, sc.on[c], t.Row.Tenant, t.msg.To)
		}
	}
	return dst
}

// CompleteCounter fills in what the counter's row does not hold and the routing says: how its
// window slides, what it reserves, and the currency of money.
func CompleteCounter(c *admission.Counter, limits []admission.Limit) {
	for i := range limits {
		if l := &limits[i]; l.Key() == c.Key() {
			c.Currency, c.Sliding, c.Burst, c.Reserve = l.Currency, l.Sliding, l.Burst, l.Reserve
			return
		}
	}
}
