package admission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
)

// TestATenantsOwnLimitTakesThePlaceOfThatOfEach: it replaces the limit of the same window and unit,
// no other.
func TestATenantsOwnLimitTakesThePlaceOfThatOfEach(t *testing.T) {
	t.Parallel()
	each := admission.Limit{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Day, Max: 5,
	}
	minute := each
	minute.Window = admission.Minute
	own := admission.Limit{Scope: admission.Scope{Tenant: "bank"}, Window: admission.Day, Max: 50}
	prefix := admission.Limit{Scope: admission.Scope{Prefix: "+44"}, Window: admission.Day, Max: 7}
	limits := []admission.Limit{each, minute, own, prefix}
	for name, c := range map[string]struct {
		tenant, number string
		want           []admission.Limit
	}{
		"without one of its own": {
			"shop", "+15550100", []admission.Limit{each.Own("shop"), minute.Own("shop")},
		},
		"with one of its own": {"bank", "+15550100", []admission.Limit{minute.Own("bank"), own}},
		"no tenant":           {"", "+447700900123", []admission.Limit{prefix}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.Covering(limits, c.tenant, c.number)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for _, l := range got {
				if found, ok := admission.Find(limits, l.Key()); !ok || !found.Equal(&l) {
					t.Errorf("%v: found %v, %v", l.Key(), found, ok)
				}
			}
		})
	}
	if l, ok := admission.Find(limits, admission.Key{Scope: admission.Scope{Prefix: "+1"}}); ok {
		t.Errorf("found %v", l)
	}
}
