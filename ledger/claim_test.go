package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestClaimStoresABatchWithItsAttemptsAndSlots(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000, Limits: []admission.Limit{
		limit(admission.Second, 1000), limit(admission.Day, 5000),
	}})
	db := rig.db
	seen := claimAll(t, l, batch("m", 500), "a")
	for i, intake := range seen.Intakes {
		if intake != ledger.Fresh || seen.Messages[i].Seq == 0 ||
			seen.Messages[i].ReceivedAt.IsZero() {
			t.Fatalf("message %d: intake %d, seq %d", i, intake, seen.Messages[i].Seq)
		}
	}
	got := map[string]int64{
		"messages": scalar[int64](t, db,
			`select count(*) from dispatcher.message_states where state = 'sending' and attempts = 1`),
		"attempts": scalar[int64](t, db,
			`select count(*) from dispatcher.all_attempts where claimed_at = $1 and outcome is null`,
			seen.Now),
		"second": scalar[int64](t, db,
			`select granted from dispatcher.limits where window_seconds = 1`),
		"day": scalar[int64](t, db,
			`select granted from dispatcher.limits where window_seconds = 86400`),
		"active": scalar[int64](t, db,
			`select active from audit.active where channel = 'a'`),
		"matched": scalar[int64](t, db, `select count(*) from audit.messages m
			join audit.attempts a on a.message_id = m.id where a.segments = 1`),
	}
	want := map[string]int64{
		"messages": 500, "attempts": 500, "second": 500, "day": 500,
		"active": 500, "matched": 500,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClaimTellsDuplicatesFromConflicts(t *testing.T) {
	t.Parallel()
	l := open(t)
	claimAll(t, l, []ledger.Message{message("one"), message("two")}, "a")
	other := message("two")
	other.Digest = 99
	var intakes []ledger.Intake
	err := runClaim(t.Context(), l, ledger.Claim{
		Messages: []ledger.Message{message("zero"), message("one"), other}, Channels: []string{"a"},
	}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		intakes = append(intakes, seen.Intakes...)
		return give(seen)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ledger.Intake{ledger.Fresh, ledger.Duplicate, ledger.Conflict},
		intakes); diff != "" {
		t.Error(diff)
	}
}

func TestClaimLeavesNothingBehindWhenDecideFails(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a", Limits: []admission.Limit{limit(admission.Day, 100)}})
	refused := errors.New("refused")
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 10), Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			_, _ = give(seen)
			return ledger.Decisions{}, refused
		})
	if !errors.Is(err, refused) || ledger.Unavailable(err) {
		t.Fatalf("got %v", err)
	}
	db := rig.db
	if n := scalar[int](t,
		db, `select (select count(*) from dispatcher.messages) + (select count(*)
			from dispatcher.all_attempts)
		+ (select sum(granted) from dispatcher.limits) + (select sum(active)
		from audit.active)`); n != 0 {
		t.Errorf("%d traces were left behind", n)
	}
	claimAll(t, l, batch("m", 10), "a") // the connection still works and no lock is held
}

// TestAClaimThatPanicsHoldsNothing: no lock, and not the only connection, for which the next claim
// and Close would wait.
func TestAClaimThatPanicsHoldsNothing(t *testing.T) {
	t.Parallel()
	l, err := ledger.Connect(t.Context(), ledger.Config{
		URL: ledgertest.URL(t), MaxConns: 1,
		Region: "test", Host: t.Name(),
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	t.Cleanup(func() {
		go func() { l.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(tier.LongestWait):
			t.Error("a connection was not given back")
		}
	})
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claim := ledger.Claim{Messages: batch("m", 3), Channels: []string{"a"}}
	func() {
		defer func() {
			if recover() != "fault" {
				t.Error("nobody heard of it")
			}
		}()
		_ = runClaim(t.Context(), l, claim, func(*ledger.Seen) (ledger.Decisions, error) {
			panic("fault")
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	if err := runClaim(ctx, l, claim, func(seen *ledger.Seen) (ledger.Decisions, error) {
		for i, intake := range seen.Intakes {
			if intake != ledger.Fresh {
				t.Errorf("message %d is there already", i)
			}
		}
		return give(seen)
	}); err != nil {
		t.Error(err)
	}
}

// TestEveryEndOfAClaimGivesItsConnectionBack with a ledger that has one for claims.
func TestEveryEndOfAClaimGivesItsConnectionBack(t *testing.T) {
	t.Parallel()
	l := connect(t, ledger.Config{URL: ledgertest.URL(t), MaxConns: 1})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	over, end := context.WithCancel(t.Context())
	end()
	commit := func(ctx context.Context, tx *ledger.Tx) error {
		d, err := give(tx.Seen())
		return errors.Join(err, tx.Commit(ctx, d))
	}
	for name, c := range map[string]struct {
		end     func(*ledger.Tx) error
		missing string
		durable bool
	}{
		"committed": {end: func(tx *ledger.Tx) error {
			return commit(t.Context(), tx)
		}, durable: true},
		"rolled back": {end: func(tx *ledger.Tx) error {
			tx.Rollback()
			tx.Rollback()
			return errors.New("rolled back")
		}},
		"refused": {end: func(tx *ledger.Tx) error {
			return tx.Commit(t.Context(), ledger.Decisions{})
		}},
		"missing channel": {end: func(tx *ledger.Tx) error {
			return commit(t.Context(), tx)
		}, missing: "never"},
		"caller gave up": {end: func(tx *ledger.Tx) error {
			return tx.Commit(over, ledger.Decisions{})
		}},
		"after a rollback": {end: func(tx *ledger.Tx) error {
			tx.Rollback()
			return commit(t.Context(), tx)
		}},
		"twice": {end: func(tx *ledger.Tx) error {
			err := commit(t.Context(), tx)
			if tx.Commit(t.Context(), ledger.Decisions{}) == nil {
				t.Error("a second commit was not refused")
			}
			return err
		}, durable: true},
	} {
		ended := t.Run(name, func(t *testing.T) {
			want := ledger.Claim{Messages: batch(name, 3), Channels: []string{"a"}}
			if c.missing != "" {
				want.Channels = append(want.Channels, c.missing)
			}
			tx, err := l.Claims.Lock(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.end(tx); (err == nil) != c.durable {
				t.Errorf("ended with %v", err)
			}
			if !allGivenBack(l) {
				t.Fatal("the connection was not given back")
			}
			intake := ledger.Fresh
			if c.durable {
				intake = ledger.Duplicate
			}
			want.Channels = want.Channels[:1]
			err = runClaim(t.Context(), l, want, func(seen *ledger.Seen) (ledger.Decisions, error) {
				if seen.Intakes[0] != intake {
					t.Errorf("claimed again, the first message is %v, want %v", seen.Intakes[0],
						intake)
				}
				return ledger.Decisions{}, errors.New("enough")
			})
			if err == nil || err.Error() != "enough" {
				t.Error(err)
			}
		})
		if !ended {
			return // there may be no connection for the others
		}
	}
	if _, err := l.Claims.Lock(over, ledger.Claim{Messages: batch("m", 1)}); !errors.Is(err,
		context.Canceled) || !allGivenBack(l) {
		t.Errorf("a claim that cannot begin: %v", err)
	}
}

func TestClaimLeavesOutTheDueRowsItIsToldTo(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a"})
	rows := batch("m", 5)
	for i := range rows {
		rows[i].State, rows[i].NextAt = ledger.Scheduled,
			time.Now().Add(-time.Hour+time.Duration(i)*time.Minute)
	}
	var seqs []int64
	err := runClaim(t.Context(), l, ledger.Claim{Messages: rows},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			for i := range seen.Messages {
				seqs = append(seqs, seen.Messages[i].Seq)
			}
			return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	except := []int64{seqs[0], seqs[3], -1}
	if n, err := l.Claims.Due(t.Context(), 10, except...); n != 3 || err != nil {
		t.Errorf("%d rows are due: %v", n, err)
	}
	var ids []string
	err = runClaim(t.Context(), l, ledger.Claim{Due: 2, Except: except, Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			for i := range seen.Messages {
				ids = append(ids, seen.Messages[i].ID)
			}
			return give(seen)
		})
	if diff := cmp.Diff([]string{rows[1].ID, rows[2].ID}, ids); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestClaimPicksUpDueRowsOldestFirst(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "full", ActiveMax: 1}, ledger.ChannelSpec{Name: "free"})
	claimAll(t, l, []ledger.Message{message("first")}, "full")
	past := message("scheduled")
	past.State, past.NextAt = ledger.Scheduled, time.Now().Add(-time.Hour)
	soon := message("sooner")
	soon.State, soon.NextAt = ledger.Scheduled, time.Now().Add(-2*time.Hour)
	soon.NumberHMAC = -7 // a sticky draw is made of it
	later := message("later")
	later.State, later.NextAt = ledger.Scheduled, time.Now().Add(time.Hour)
	nothing := func(seen *ledger.Seen) (ledger.Decisions, error) {
		return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Messages: []ledger.Message{past, soon, later}},
		nothing); err != nil {
		t.Fatal(err)
	}
	var due []ledger.Message
	err := runClaim(t.Context(), l, ledger.Claim{Due: 10, Channels: []string{"free"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			due = append(due, seen.Messages...)
			return give(seen)
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(due) != 2 || due[0].ID != "sooner" || due[1].ID != "scheduled" {
		t.Fatalf("picked up %d rows", len(due))
	}
	want := soon
	want.Digest = 0
	want.Seq, want.ReceivedAt, want.NextAt = due[0].Seq, due[0].ReceivedAt, due[0].NextAt
	if diff := cmp.Diff(want, due[0]); diff != "" {
		t.Error(diff)
	}
	if n, err := l.Claims.Due(t.Context(), 10); err != nil || n != 0 {
		t.Errorf("%d rows are still due: %v", n, err)
	}
}
