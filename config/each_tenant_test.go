package config_test

import (
	"strings"
	"testing"

	"dispatcher/admission"
)

// TestALimitOfEachTenantIsWritten in quotes: YAML reads a bare star as an alias.
func TestALimitOfEachTenantIsWritten(t *testing.T) {
	t.Parallel()
	const doc = "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}, " +
		"match: {tenant: shop}, max_segments: 6}]\n"
	got, err := setLimit([]byte(doc), "", perDay(5, admission.EachTenant))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), `tenant: "*"`) && !strings.Contains(string(got),
		`tenant: '*'`) {
		t.Errorf("%s", got)
	}
	r := parse(t, string(got))
	if len(r.Limits) != 1 || !r.Limits[0].Scope.Each() {
		t.Errorf("%+v", r.Limits)
	}
	// It counts all messages of the route, whichever tenants the route matches.
	limit := perDay(5, admission.EachTenant)
	limit.Unit = admission.Segments
	if _, err := setLimit([]byte(doc), "", limit); err == nil ||
		!strings.Contains(err.Error(), "of each tenant") {
		t.Errorf("%v", err)
	}
}
