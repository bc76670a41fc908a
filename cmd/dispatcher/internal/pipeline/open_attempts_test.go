package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
)

// TestAClaimIsOpenFromBeforeItsCommit: while the commit hangs, or its answer is missing, heartbeats
// report the claim. Recovery finds the attempts of a process only from its oldest open claim on.
func TestAClaimIsOpenFromBeforeItsCommit(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	blocker, err := pgx.Connect(t.Context(), p.sql.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blocker.Close(context.WithoutCancel(t.Context())) })
	if _, err := blocker.Exec(t.Context(),
		`begin; lock table dispatcher.payloads in share mode`); err != nil {
		t.Fatal(err)
	}
	began := p.now()
	handled := make(chan error, 1)
	go func() { handled <- p.Handle(t.Context(), jobsNamed("held", 20), nil) }()
	waits := func() (n int) {
		if err := p.sql.QueryRow(t.Context(), `select count(*) from pg_locks where not granted
			and relation::regclass::text ~ 'payloads'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); waits() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no claim waits for the table")
		}
		ledger.Pause(t.Context(), 10*time.Millisecond)
	}
	if oldest := p.Dispatcher.open.oldest(); oldest.IsZero() || oldest.Before(began.Add(-time.Second)) {
		t.Errorf("while the claim is written, the oldest open claim is of %s", oldest)
	}
	if _, err := blocker.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-handled; err != nil {
		t.Fatal(err)
	}
	p.eventually(t, byState, map[string]int64{"accepted": 20})
	if oldest := p.Dispatcher.open.oldest(); !oldest.IsZero() && p.Dispatcher.open.count() == 0 {
		t.Errorf("nothing is open since %s", oldest)
	}
}

func TestAClaimThatIsRolledBackIsNotOpen(t *testing.T) {
	t.Parallel()
	o := &openAttempts{}
	at := time.Now()
	first, second := o.begin(at), o.begin(at.Add(time.Second))
	o.committed(first, nil)
	if got := o.oldest(); !got.Equal(at.Add(time.Second)) {
		t.Errorf("after the first was rolled back, the oldest is of %s", got)
	}
	open := &openAttempt{}
	o.committed(second, []*openAttempt{open})
	if got := o.oldest(); !got.Equal(at.Add(time.Second)) || o.count() != 1 {
		t.Errorf("an attempt is open: the oldest is of %s, %d are open", got, o.count())
	}
	o.settled([]answered{{attempt: open}})
	if got := o.oldest(); !got.IsZero() || o.count() != 0 {
		t.Errorf("nothing is open: the oldest is of %s, %d are open", got, o.count())
	}
}
