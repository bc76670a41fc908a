package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

const guardedRouting = "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]\n"

func TestGuardsHaveDefaults(t *testing.T) {
	t.Parallel()
	got := parse(t, guardedRouting+`guards:
  - {per: calling_code, times: 5, at_least: 200}
  - {per: tenant, times: 3, at_least: 1000, days: 14, action: warn}
  - {per: prefix, times: 5, at_least: 200}
  - {per: prefix, times: 5, at_least: 200, digits: 6, action: warn}
`).Guards
	want := []config.Guard{
		{Per: config.ByCallingCode, Times: 5, AtLeast: 200, Days: 7, Action: config.GuardPauses},
		{Per: config.ByTenant, Times: 3, AtLeast: 1000, Days: 14, Action: config.GuardWarns},
		{Per: config.ByPrefix, Digits: 4, Times: 5, AtLeast: 200, Days: 7, Action: config.GuardPauses},
		{Per: config.ByPrefix, Digits: 6, Times: 5, AtLeast: 200, Days: 7, Action: config.GuardWarns},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherGuardIsAChange(t *testing.T) {
	t.Parallel()
	before := parse(t, guardedRouting+"guards: [{per: tenant, times: 3, at_least: 10}]")
	after := parse(t, guardedRouting+"guards: [{per: tenant, times: 4, at_least: 10, days: 3}]")
	want := []string{"guards.tenant.pause.times", "guards.tenant.pause.days"}
	var got []string
	for _, c := range config.Diff(before, after) {
		got = append(got, c.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
