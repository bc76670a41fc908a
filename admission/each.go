package admission

import "slices"

// EachTenant as the tenant of a limit's scope means that every tenant has such a limit of its own,
// unless the document gives it one of the same window and unit. Messages without a tenant are not
// counted.
const EachTenant = "*"

// Each reports whether the scope stands for one scope per tenant.
func (s Scope) Each() bool { return s.Tenant == EachTenant }

// Own turns a limit of each tenant into the limit of one tenant.
func (l *Limit) Own(tenant string) Limit {
	own := *l
	own.Scope = Scope{Tenant: tenant}
	return own
}

// Covering returns those limits that count a message of the tenant to the number. The given limits
// are those of one channel, or those over all channels. A limit of each tenant is returned as the
// tenant's own.
func Covering(limits []Limit, tenant, number string) []Limit {
	var out []Limit
	for i := range limits {
		l := limits[i]
		if l.Scope.Each() && tenant != "" && tenant != EachTenant {
			l = l.Own(tenant)
			if slices.ContainsFunc(limits, func(other Limit) bool { return other.Key() == l.Key() }) {
				continue
			}
		}
		if l.Scope.Covers(tenant, number) {
			out = append(out, l)
		}
	}
	return out
}

// Find returns the limit with key k. The given limits are those of one channel, or those over all
// channels. For a tenant without a limit of its own it is the limit of each tenant, returned as the
// tenant's own. ok is false when no limit is found.
func Find(limits []Limit, k Key) (Limit, bool) {
	at := slices.IndexFunc(limits, func(l Limit) bool { return l.Key() == k })
	if at >= 0 {
		return limits[at], true
	}
	if k.Scope.Tenant == "" || k.Scope.Each() {
		return Limit{}, false
	}
	each := k
	each.Scope = Scope{Tenant: EachTenant}
	l, ok := Find(limits, each)
	return l.Own(k.Scope.Tenant), ok
}
