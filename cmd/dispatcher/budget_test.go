package main

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config/tier"
)

// budgetRouting gives each tenant a budget over all channels.
var budgetRouting = strings.Replace(testRouting, "routes:",
	"limits: [{window: prepaid, unit: money, currency: GBP, tenant: \"*\"}]\nroutes:", 1)

// TestABudgetIsToppedUpAndListed: a top-up can be corrected, and the history shows both.
func TestABudgetIsToppedUpAndListed(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 0)
	_, env := seeded(t)
	applyRouting(t, env, write(t, "budget.yaml", budgetRouting))
	topUp := func(amount string, more ...string) result {
		t.Helper()
		return dispatcher(t, "", env, withReason("paid", append([]string{
			"budget", "top-up", "--all-channels", "--tenant", "shop", "--amount", amount,
		}, more...)...)...)
	}
	dry := topUp("250.00", "--dry-run")
	if dry.code != exitOK || !strings.Contains(dry.out, "would come to 250.00 GBP") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			dry, exitOK, "would come to 250.00 GBP")
	}
	done := decoded[control.ToppedUp](t, topUp("250.00", "--key", "invoice-1", "--format", "json"))
	if done.ID == 0 || done.Before != "0.00" || done.After != "250.00" || done.Author != "ann" ||
		done.Repeated {
		t.Errorf("got %+v, want ID other than %v, Before %v, After %v, Author %v and no Repeated",
			done, 0, "0.00", "250.00", "ann")
	}
	if got := topUp("250.00", "--key", "invoice-1"); got.code != exitOK ||
		!strings.Contains(got.out, "Nothing is changed: this top-up of 250.00 GBP was recorded at") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "Nothing is changed: this top-up of 250.00 GBP was recorded at")
	}
	if got := topUp("-50"); got.code != exitOK || !strings.Contains(got.out, "it comes to 200.00") {
		t.Errorf("got %+v, want exit code %d and %q in the output", got, exitOK, "it comes to 200.00")
	}
	for want, args := range map[string][]string{
		"the budget has 200.00 GBP left":                  {"-200.01"},
		`another top-up has the key "invoice-1"`:          {"3", "--key", "invoice-1"},
		"amount: 0 changes nothing":                       {"0"},
		`amount: "much" is`:                               {"much"},
		"the routing was changed after version 1":         {"3", "--expect-version", "1"},
		"each tenant has a budget of its own: name one t": {"3", "--tenant", "*"},
	} {
		if got := topUp(args[0], args[1:]...); got.code == exitOK || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want an exit code other than %d and %q in the error",
				args, got, exitOK, want)
		}
	}
	if got := dispatcher(t, "", env, withReason("paid", "budget", "top-up", "a", "--amount",
		"3")...); got.code != exitUsage || !strings.Contains(got.err,
		"the routing document has no prepaid budget a prepaid money") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "the routing document has no prepaid budget a prepaid money")
	}
	now := decoded[status.Budgets](t, dispatcher(t, "", env, "budget", "list", "--format", "json"))
	if len(now.Budgets) != 1 || now.Budgets[0].Left.Units != 200e6 ||
		now.Budgets[0].Level != "enough" || now.Budgets[0].Scope != "tenant:shop" {
		t.Errorf("got %+v", now)
	}
	table := dispatcher(t, "", env, "budget", "list").out
	history := dispatcher(t, "", env, "budget", "history", "--tenant", "shop").out
	for _, want := range []string{"tenant:shop", "200.00", "enough", "0.00 %"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	for _, want := range []string{"invoice-1", "-50.00", "ann", "paid"} {
		if !strings.Contains(history, want) {
			t.Errorf("%q is missing in\n%s", want, history)
		}
	}
	limits := dispatcher(t, "", env, "limits", "show").out
	if !strings.Contains(limits, "prepaid GBP") || !strings.Contains(limits, "never") {
		t.Errorf("got %s, want %q in it and %q in it", limits, "prepaid GBP", "never")
	}
	set := dispatcher(t, "", env,
		withReason("more", "limits", "set", "--all-channels", "--window", "prepaid",
			"--unit", "money", "--max", "5", "--tenant", "*")...)
	if set.code == exitOK || !strings.Contains(set.err, "a prepaid budget has no max to set") {
		t.Errorf("got %+v, want an exit code other than %d and %q in the error",
			set, exitOK, "a prepaid budget has no max to set")
	}
}
