package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

const allowedRest = `
channels: {a: {provider: sandbox}}
routes: [{name: r, weights: {a: 1}, allowed_countries: [DE, fr]}]
`

func TestAllowedCountriesReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := parse(t, "allowed: {countries: [GB, fr], tenants: {shop: [US], bank: [gb]}}"+allowedRest)
	want := config.Allowed{Countries: []string{"gb", "fr"}, Tenants: []config.TenantCountries{
		{Tenant: "bank", Countries: []string{"gb"}}, {Tenant: "shop", Countries: []string{"us"}},
	}}
	if diff := cmp.Diff(want, r.Allowed); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		tenant, country string
		want            bool
	}{
		{"", "gb", true},
		{"", "us", false},
		{"", "", false},
		{"shop", "us", true},
		{"shop", "gb", false},
		{"bank", "gb", true},
		{"bank", "fr", false},
	} {
		if got := r.Allowed.Allows(c.tenant, c.country); got != c.want {
			t.Errorf("tenant %q may send to %q: %v", c.tenant, c.country, got)
		}
	}
	if diff := cmp.Diff([]string{"de", "fr"}, r.Routes[0].AllowedCountries); diff != "" {
		t.Error(diff)
	}
	if route := r.Routes[0]; route.AllowsCountry("gb") || !route.AllowsCountry("de") {
		t.Errorf("%+v", route)
	}
	open := parse(t, "allowed: {tenants: {shop: [US]}}"+allowedRest).Allowed
	if !open.Allows("", "") || !open.Allows("bank", "kp") || open.Allows("shop", "gb") {
		t.Errorf("%+v", open)
	}
}

func TestAllowedCountriesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"allowed: {countries: [uk]}":         `allowed.countries[0]: "uk" is not a country; did you`,
		"allowed: {countries: []}":           "allowed.countries: allows no country",
		"allowed: {tenants: {shop: []}}":     "allowed.tenants.shop: allows no country",
		"allowed: {tenants: {shop: [zz]}}":   `allowed.tenants.shop[0]: "zz" is not a country`,
		"allowed: {countries: [gb], kp: no}": `kp`,
	} {
		_, err := config.ParseRouting("r.yaml", []byte(doc+allowedRest))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestListsOfWhatIsAllowedTakeGroups(t *testing.T) {
	t.Parallel()
	doc := parse(t, `
country_groups: {dach: [DE, AT, CH]}
allowed: {countries: [dach, GB], tenants: {shop: [dach]}}
channels: {a: {provider: sandbox}}
routes: [{name: default, weights: {a: 1}, allowed_countries: [dach]}]
`)
	for tenant, want := range map[string]bool{"": true, "shop": false} {
		if !doc.Allowed.Allows(tenant, "at") || doc.Allowed.Allows(tenant, "gb") != want {
			t.Errorf("tenant %q: %+v", tenant, doc.Allowed)
		}
	}
	if !doc.Routes[0].AllowsCountry("ch") || doc.Routes[0].AllowsCountry("gb") {
		t.Errorf("%+v", doc.Routes[0].AllowedCountries)
	}
}
