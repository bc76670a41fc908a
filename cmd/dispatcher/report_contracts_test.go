package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestContractsAreAddedUp: in their units, for channels that have a contract.
func TestContractsAreAddedUp(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	if got := dispatcher(t, "", env, "report", "contracts"); got.code != exitOK ||
		!strings.HasPrefix(got.out, "No channel") {
		t.Errorf("without contracts: %+v", got)
	}
	settled(t, l, claimed(t, l, drawnMessages()...)) // 25 on a, 15 on b, 60 on c
	const document = `
channels:
  a: {provider: sandbox, contract: {cap: 30}}
  b:
    provider: sandbox
    price: {currency: GBP, default: "0.028"}
    contract: {unit: money, commitment: "0.1"}
  c: {provider: sandbox}
routes: [{name: default, weights: {a: 25, b: 15, c: 60}}]
`
	if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: document, Channels: []ledger.ChannelSpec{
			{Name: "a"}, {Name: "b"}, {Name: "c"},
		},
	}); err != nil {
		t.Fatal(err)
	}
	got := dispatcher(t, "", env, "report", "contracts", "--format", "json")
	all := shown[struct{ Contracts []report.Contract }](t, got).Contracts
	if got.code != exitFailed || len(all) != 2 {
		t.Fatalf("got %+v", got)
	}
	if a := all[0]; a.ToDate != 25 || a.Unit != "messages" || *a.Cap != 30 ||
		a.Warning != "83 % of the cap is used" {
		t.Errorf("got %+v", a)
	}
	if b := all[1]; b.Cap != nil || b.ToDate != 15*28_000 || b.Currency != "GBP" || *b.Commitment != 100_000 ||
		b.Warning != "" {
		t.Errorf("got %+v", b)
	}
	if table := dispatcher(t, "", env, "report", "contracts").out; !strings.Contains(table, "0.42") ||
		!strings.Contains(table, "83 % of the cap is used") {
		t.Error(table)
	}
}

// TestAPastMonthIsComparedWithItsOwnContracts: not with those of the routing in force now.
func TestAPastMonthIsComparedWithItsOwnContracts(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	apply := func(contracts string) {
		t.Helper()
		if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "test", Document: "channels:\n" + contracts +
				"routes: [{name: default, weights: {b: 1}}]\n",
			Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	apply("  a: {provider: sandbox, contract: {commitment: 30, begins: 9}}\n" +
		"  b: {provider: sandbox, contract: {cap: 30}}\n")
	db := opened(t, url)
	if _, err := db.Exec(t.Context(), `
		update dispatcher.routing_versions set created_at = now() - interval '1 year'`); err != nil {
		t.Fatal(err)
	}
	apply("  b: {provider: sandbox, contract: {cap: 99}}\n")
	read := func(day time.Time) (found []string) {
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "report", "contracts",
			"--format", "json", "--day", day.Format(time.DateOnly))
		all := decoded[struct{ Contracts []report.Contract }](t, got)
		for _, c := range all.Contracts {
			switch {
			case c.Cap != nil:
				found = append(found, fmt.Sprint(c.Channel, " cap ", *c.Cap, c.Warning))
			case c.Commitment != nil:
				found = append(found, fmt.Sprint(c.Channel, " commitment ", *c.Commitment, ", ", c.Warning))
			}
		}
		return found
	}
	now := time.Now()
	if diff := cmp.Diff([]string{"b cap 99"}, read(now)); diff != "" {
		t.Errorf("of this month: %s", diff)
	}
	if diff := cmp.Diff([]string{"b cap 30", "a commitment 30, the commitment was missed"},
		read(now.AddDate(0, 0, -70))); diff != "" {
		t.Errorf("of a past month: %s", diff)
	}
}
