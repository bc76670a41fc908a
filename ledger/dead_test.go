package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// deadOnes stores dead records with these ids, one offset after the other.
func deadOnes(t testing.TB, l *ledger.Ledger, ids ...string) {
	t.Helper()
	messages := make([]ledger.Message, len(ids))
	for i, id := range ids {
		messages[i] = ledger.Message{
			ID: id, Lane: "otp", State: ledger.Dead, Reason: "bad_number", Detail: "to is not a number",
			Envelope: []byte(`{"id":"x"}`),
			Origin:   ledger.Origin{Topic: "sms.otp", Partition: 2, Offset: int64(i)},
		}
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Messages: messages}, undecided); err != nil {
		t.Fatal(err)
	}
}

// undecided decides nothing.
func undecided(seen *ledger.Seen) (ledger.Decisions, error) {
	return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
}

func replaying(d *ledger.DeadRecord, as string) *ledger.Replaying {
	return &ledger.Replaying{Record: d, As: as, Author: "ann", Reason: "fixed"}
}

// TestTheIDOfADeadRecordIsGivenBackOnce: what is published under it is a new message. A caller that
// read the record before another one replayed it gets an error.
func TestTheIDOfADeadRecordIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	deadOnes(t, l, "dead-1", "dead-2")
	d, err := l.DeadRecords.Find(t.Context(), "dead-1")
	if err != nil || d.Reason != "bad_number" || d.Detail != "to is not a number" || d.Replay != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if at, err := l.DeadRecords.At(t.Context(), d.Origin); err != nil || at.Seq != d.Seq {
		t.Errorf("%+v, %v", at, err)
	}
	for i, want := range []error{nil, ledger.ErrReplayed} {
		if err := l.DeadRecords.Replay(t.Context(), replaying(&d, "dead-1")); !errors.Is(err, want) {
			t.Fatalf("call %d: %v, want %v", i, err, want)
		}
	}
	if holder, err := l.DeadRecords.Holder(t.Context(), "dead-1"); holder != 0 || err != nil {
		t.Errorf("number %d still has the id: %v", holder, err)
	}
	again, err := l.DeadRecords.Find(t.Context(), "dead-1")
	if err != nil || again.Replay == nil || again.Replay.Author != "ann" ||
		again.Replay.As != "dead-1" {
		t.Errorf("%+v, %v", again, err)
	}
	if broken := amiss(t, db, "ids_are_recognised"); broken != "" {
		t.Error(broken)
	}
	deadOnes(t, l, "dead-1") // what is published under it is not a duplicate
	if broken := amiss(t, db, "ids_are_recognised"); broken != "" {
		t.Error(broken)
	}
	if n := scalar[int](t, db, `select count(*) from audit.messages where id = 'dead-1'`); n != 2 {
		t.Errorf("%d messages have the id, want the dead one and the new one", n)
	}
	if n := scalar[int](t, db, `select count(*) from audit.operator_actions
		where action = 'replay' and subject = 'dead-1'`); n != 1 {
		t.Errorf("%d replays are on record", n)
	}
}

// TestNoOtherIDIsGivenBack: neither that of a message that may have been sent, nor one that another
// message has by now.
func TestNoOtherIDIsGivenBack(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, l, batch("alive", 1), "a")
	deadOnes(t, l, "dead-1")
	for what, free := range map[string]bool{
		`select dispatcher.release_dead(seq) from dispatcher.messages where id = 'alive-00000'`: false,
		`select dispatcher.release_dead(0)`:                                                     false,
	} {
		if got := scalar[bool](t, db, what); got != free {
			t.Errorf("%s: %v", what, got)
		}
	}
	d, err := l.DeadRecords.Find(t.Context(), "dead-1")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, `update dispatcher.ids_0 set seq = seq + 1 where id = 'dead-1'`)
	if err := l.DeadRecords.Replay(t.Context(), replaying(&d, "dead-1")); !errors.Is(err,
		ledger.ErrIDTaken) {
		t.Errorf("%v", err)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.operator_actions`); n != 0 {
		t.Errorf("%d actions are on record of a replay that was refused", n)
	}
	if err := l.DeadRecords.Replay(t.Context(), replaying(&d, "new-id")); err != nil {
		t.Errorf("under a new id: %v", err)
	}
}

func TestDeadRecordsAreListedByFilter(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	deadOnes(t, l, "dead-1", "dead-2", "dead-3")
	execute(t, db, `update dispatcher.messages set lane = 'bulk', topic = 'sms.bulk',
		reason = 'no_route', received_at = received_at - interval '2 hours' where id = 'dead-2'`)
	for name, c := range map[string]struct {
		filter ledger.DeadFilter
		want   int64
	}{
		"all":    {ledger.DeadFilter{}, 3},
		"lane":   {ledger.DeadFilter{Lane: "bulk"}, 1},
		"topic":  {ledger.DeadFilter{Topic: "sms.otp"}, 2},
		"reason": {ledger.DeadFilter{Reason: "no_route"}, 1},
		"since":  {ledger.DeadFilter{Since: time.Now().Add(-time.Hour)}, 2},
		"none":   {ledger.DeadFilter{Lane: "bulk", Reason: "bad_number"}, 0},
	} {
		n, err := l.DeadRecords.Count(t.Context(), &c.filter)
		listed, listErr := l.DeadRecords.List(t.Context(), &c.filter, 2)
		if err != nil || listErr != nil || n != c.want || int64(len(listed)) != min(c.want, 2) {
			t.Errorf("%s: %d and %d of %d, %v, %v", name, len(listed), n, c.want, err, listErr)
		}
	}
	listed, err := l.DeadRecords.List(t.Context(), &ledger.DeadFilter{}, 10)
	if err != nil || len(listed) != 3 || listed[2].ID != "dead-1" {
		t.Fatalf("the first is not last: %+v, %v", listed, err)
	}
	next, err := l.DeadRecords.List(t.Context(), &ledger.DeadFilter{Below: listed[1].Seq}, 10)
	if err != nil || len(next) != 1 || next[0].ID != "dead-1" {
		t.Errorf("the next page: %+v, %v", next, err)
	}
}

// TestNoRecordIsLostWhileAnIDIsGivenBack: a claim with the same id at the same time finds either
// the dead record, which is a conflict, or a free id. The record is never taken for a duplicate of
// the released one.
func TestNoRecordIsLostWhileAnIDIsGivenBack(t *testing.T) {
	t.Parallel()
	url := lend(t).url
	l := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 4)})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	const n = 40
	intakes := map[ledger.Intake]int{}
	for i := range n {
		id := batch("race", i+1)[i].ID
		deadOnes(t, l, id)
		d, err := l.DeadRecords.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		work.Go(func() {
			if err := l.DeadRecords.Replay(t.Context(), replaying(&d, id)); err != nil {
				t.Error(err)
			}
		})
		intake, err := intakeOf(t.Context(), l, batch("race", i+1)[i])
		work.Wait()
		if err != nil {
			t.Fatal(err)
		}
		intakes[intake]++
	}
	if intakes[ledger.Duplicate] > 0 || intakes[ledger.Fresh]+intakes[ledger.Conflict] != n {
		t.Errorf("%v", intakes)
	}
}

// intakeOf claims one message and returns its Intake.
func intakeOf(ctx context.Context, l *ledger.Ledger, m ledger.Message) (ledger.Intake, error) {
	tx, err := l.Claims.Lock(ctx, ledger.Claim{
		Messages: []ledger.Message{m}, Channels: []string{"a"},
	})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	d, err := give(tx.Seen())
	if err != nil {
		return 0, err
	}
	return tx.Seen().Intakes[0], tx.Commit(ctx, d)
}
