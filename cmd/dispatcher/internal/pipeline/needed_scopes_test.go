package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

func TestNeededScopesAreBoundedAndTheLatestGoFirst(t *testing.T) {
	t.Parallel()
	var all []ledger.ScopeRef
	for i := range decide.MaxNeeded + 2 {
		scope := admission.Scope{Tenant: fmt.Sprint("tenant-", i)}
		all = append(all, ledger.ScopeRef{Scope: scope})
	}
	earlier, later := all[:decide.MaxNeeded], all[decide.MaxNeeded:]
	var n neededScopes
	began := time.Now()
	n.note(earlier, began)
	n.note(later, began.Add(time.Second))
	got := n.open(began.Add(time.Second))
	if len(got) != decide.MaxNeeded || !slices.Contains(got, later[0]) ||
		!slices.Contains(got, later[1]) {
		t.Errorf("%d of %d are remembered", len(got), decide.MaxNeeded)
	}
	got = n.open(began.Add(neededFor + time.Second/2))
	if len(got) != 2 || !slices.Contains(got, later[0]) || !slices.Contains(got, later[1]) {
		t.Errorf("later: got %d remembered", len(got))
	}
	if got := n.open(began.Add(3 * neededFor)); len(got) > 0 {
		t.Errorf("scopes unneeded for long are remembered: %v", got)
	}
}
