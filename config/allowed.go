package config

import (
	"slices"
	"strings"
)

// Allowed lists the only countries that messages are sent to. The zero value allows all.
type Allowed struct {
	Countries []string // ISO 3166 in lower case; nil allows all
	// Tenants have lists that replace Countries for them; ordered by tenant.
	Tenants []TenantCountries
}

// TenantCountries are the countries that one tenant may send to.
type TenantCountries struct {
	Tenant    string
	Countries []string
}

// Any reports whether any country is excluded for any tenant.
func (a *Allowed) Any() bool { return len(a.Countries)+len(a.Tenants) > 0 }

// Allows reports whether a tenant may send to a country. A number without a country is in no list.
func (a *Allowed) Allows(tenant, country string) bool {
	for i := range a.Tenants {
		if a.Tenants[i].Tenant == tenant {
			return slices.Contains(a.Tenants[i].Countries, country)
		}
	}
	return a.Countries == nil || slices.Contains(a.Countries, country)
}

// AllowsCountry reports whether a route may carry messages to a country.
func (r *Route) AllowsCountry(country string) bool {
	return r.AllowedCountries == nil || slices.Contains(r.AllowedCountries, country)
}

func readAllowed(v value) Allowed {
	f, ok := v.fields(allowedPart)
	if !ok {
		return Allowed{}
	}
	a := Allowed{Countries: readAllowedCountries(f, "countries", "country")}
	tenants, ok := f.get("tenants")
	if !ok {
		return a
	}
	entries, _ := tenants.entries()
	for _, e := range entries {
		list := TenantCountries{Tenant: e.name}
		for _, item := range e.value.items() {
			if s, ok := item.text(); ok && checkCountryOrGroup(item, s, v.r.countryGroups) {
				list.Countries = append(list.Countries, s)
			}
		}
		list.Countries = withMembers(list.Countries, v.r.countryGroups)
		if len(list.Countries) == 0 {
			e.value.fail("%s", nothingAllowed)
		}
		a.Tenants = append(a.Tenants, list)
	}
	slices.SortFunc(a.Tenants, func(x, y TenantCountries) int {
		return strings.Compare(x.Tenant, y.Tenant)
	})
	return a
}

const nothingAllowed = "allows no country; name one, as [GB], or remove the key to allow all"

// readAllowedCountries reads a list that is not empty; nil when there is none.
func readAllowedCountries(f fields, plural, singular string) []string {
	list := readCountries(f, plural, singular)
	if v, ok := f.get(plural); ok && len(list) == 0 {
		v.fail("%s", nothingAllowed)
	}
	return list
}

func pathsOfAllowed(p paths, a *Allowed) {
	p.below("countries").setWords(a.Countries)
	for i := range a.Tenants {
		p.below("tenants", a.Tenants[i].Tenant).setWords(a.Tenants[i].Countries)
	}
}
