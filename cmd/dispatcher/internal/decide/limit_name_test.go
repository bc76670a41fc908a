package decide

import (
	"testing"

	"dispatcher/admission"
)

// TestANameOfALimitHoldsNoNumber: rankings are kept when numbers are deleted, and a limit may be
// one of a single number.
func TestANameOfALimitHoldsNoNumber(t *testing.T) {
	t.Parallel()
	limit := admission.Limit{
		Scope: admission.Scope{Prefix: "+447700900123"}, Window: admission.Day,
	}
	name := NameLimit(&limit, true)
	if got := string(name.append(nil)); got != ":all:1d:messages:prefix:+4477009" {
		t.Error(got)
	}
}

// TestNamingALimitAllocatesNothing: every message that a limit turns away is stored with its name.
func TestNamingALimitAllocatesNothing(t *testing.T) { //nolint:paralleltest // It counts allocations.
	counter := admission.Counter{Limit: admission.Limit{
		Scope: admission.Scope{Tenant: "shop"}, Window: admission.Day,
	}}
	x := exclusion{reason: TenantLimit, limit: &admission.Exclusion{Counter: &counter}}
	memory := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		name := x.limitName()
		memory = name.append(memory[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
