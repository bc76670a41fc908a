package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

func TestActionsOfOperatorsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	execute(t, rig.db, `insert into dispatcher.operator_actions (at, author, reason, action, subject)
		select now() - n * interval '1 minute', 'ann', 'wrong day', 'cancel', 'm' || n
		from generate_series(1, 3) n`)
	got, err := rig.l.Audits.Actions(t.Context(), &ledger.ActionFilter{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Subject != "m1" || got[1].Subject != "m2" {
		t.Fatalf("%+v", got)
	}
	if a := got[0]; a.Author != "ann" || a.Login == "" || a.Name != "cancel" ||
		a.Reason != "wrong day" || a.Kind != ledger.MessageAction || !a.Private() {
		t.Errorf("%+v", a)
	}
	page, err := rig.l.Audits.Actions(t.Context(), &ledger.ActionFilter{After: &got[1]}, 2)
	if err != nil || len(page) != 1 || page[0].Subject != "m3" {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestActionsHaveSettledAmbiguities among the others in order of time, with the login.
func TestActionsHaveSettledAmbiguities(t *testing.T) {
	t.Parallel()
	l, m, _ := openAmbiguity(t, ledger.Lookup)
	for _, subject := range []string{"before", "after"} {
		if err := l.Audits.Note(t.Context(), &ledger.Action{
			Name: "test", Subject: subject, Author: "ann", Reason: "new account",
		}); err != nil {
			t.Fatal(err)
		}
		if subject == "before" {
			settled := final(m)
			settled.Author, settled.Note = "bob", "asked the provider"
			if !resolve(t, l, settled) {
				t.Fatal("nothing was settled")
			}
		}
	}
	got, err := l.Audits.Actions(t.Context(),
		&ledger.ActionFilter{Kind: ledger.MessageAction}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range got {
		a := &got[i]
		names = append(names, a.Author+" "+a.Name+" "+a.Subject+" "+a.Detail)
		if a.Login == "" {
			t.Errorf("no login: %+v", a)
		}
	}
	if diff := cmp.Diff([]string{
		"ann test after ", "bob settle " + m.ID + " as final", "ann test before ",
	}, names); diff != "" {
		t.Error(diff)
	}
}
