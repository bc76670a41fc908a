package ledger_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// disputed is a message with an ambiguity about its first attempt, while another transaction has it
// locked.
type disputed struct {
	l, other  *ledger.Ledger
	lock, see *pgx.Conn
	m         ledger.Message
	unknown   ledger.Settlement
}

func dispute(t *testing.T) *disputed {
	t.Helper()
	rig := lend(t)
	d := &disputed{
		l: rig.l, other: connect(t, ledger.Config{URL: rig.url}), lock: rig.db,
		see: raw(t, rig.url),
	}
	apply(t, d.l, ledger.ChannelSpec{Name: "a"})
	d.m = claimAll(t, d.l, []ledger.Message{message("m")}, "a").Messages[0]
	d.unknown = unknown(d.m)
	d.unknown.Receipts, d.unknown.Await = 1, time.Hour
	d.unknown.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.Lookup, Until: time.Now().Add(time.Minute), NextAt: time.Now(),
	}
	settleAll(t, d.l, []ledger.Settlement{d.unknown})
	return d
}

// after resolves the ambiguity. The resolution has to wait until work, which began earlier, has
// ended.
func (d *disputed) after(t *testing.T, work func() error, r *ledger.Resolution) (ended bool) {
	t.Helper()
	execute(t, d.lock, `begin`)
	execute(t, d.lock, `select from dispatcher.messages for update`)
	before := waiting(t, d.see, work)
	over := waiting(t, d.see, func() (err error) {
		ended, err = d.other.Ambiguities.Resolve(t.Context(), r)
		return err
	})
	execute(t, d.lock, `commit`)
	if err := <-before; err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	return ended
}

// refusedLate is a late answer: an attempt that was unknown was not taken.
func refusedLate(s ledger.Settlement) ledger.Settlement {
	s.Outcome, s.State, s.Reason, s.Tried, s.Segments, s.PriceMicros, s.Receipts,
		s.Ambiguity = provider.Refused, ledger.Retry, "refused", true, 0, 0, 0, nil
	return s
}

// sentAgain is the resolution that the message is resent.
func sentAgain(m ledger.Message) ledger.Resolution {
	j := final(m)
	j.As = ledger.Resent
	j.Move = &ledger.Move{
		State: ledger.Retry, Reason: "resend", PossibleDuplicate: true,
		Tried: true,
	}
	return j
}

// TestAResolutionSeesWhatWasCommittedLast: the outcome of the attempt is being written when the
// ambiguity is resolved.
func TestAResolutionSeesWhatWasCommittedLast(t *testing.T) {
	t.Parallel()
	truths := map[string]struct {
		tell func(*testing.T, *disputed) error
		want string
	}{
		"a late refusal": {
			func(t *testing.T, d *disputed) error {
				return d.l.Settlements.Settle(t.Context(), []ledger.Settlement{
					refusedLate(d.unknown),
				})
			}, "retry refused {a}",
		},
		"a receipt": {
			func(t *testing.T, d *disputed) error {
				_, err := d.l.Receipts.Receive(t.Context(), []ledger.Receipt{
					keyed(d.m, 1, "r1", provider.Delivered),
				}, tellState)
				return err
			}, "delivered",
		},
	}
	verdicts := map[string]func(ledger.Message) ledger.Resolution{
		"gives up": final, "resends": sentAgain,
	}
	for truth, told := range truths {
		for verdict, resolve := range verdicts {
			t.Run(verdict+" behind "+truth, func(t *testing.T) {
				t.Parallel()
				d := dispute(t)
				j := resolve(d.m)
				if d.after(t, func() error { return told.tell(t, d) }, &j) {
					t.Error("it was resolved")
				}
				if got := scalar[string](t, d.see, seeAmbiguity); got+scalar[string](t, d.see,
					`select coalesce(' ' || tried::text, '')
						from dispatcher.messages`) != told.want {
					t.Errorf("the message is %s, want %s", got, told.want)
				}
			})
		}
	}
}

// TestAResolutionWaitsForTheLockOfItsAttempt, although the message is not locked yet: a settlement
// locks the message after the attempt.
func TestAResolutionWaitsForTheLockOfItsAttempt(t *testing.T) {
	t.Parallel()
	d := dispute(t)
	j := final(d.m)
	execute(t, d.lock, `begin`)
	execute(t, d.lock, `update dispatcher.attempts set outcome = 'refused', answers = answers + 1`)
	done := waiting(t, d.see, func() error {
		ended, err := d.other.Ambiguities.Resolve(t.Context(), &j)
		if ended {
			t.Error("it was resolved")
		}
		return err
	})
	execute(t, d.lock, `update dispatcher.messages
		set state = 'retry', reason = 'refused', next_at = now(), finished_at = null`)
	execute(t, d.lock, `commit`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := scalar[string](t, d.see, seeAmbiguity); got != "retry refused" {
		t.Error(got)
	}
}

// TestAResolutionTakesNoMessageBackThatHasContinued: the outcome was known before, and a claim of
// the next attempt is running.
func TestAResolutionTakesNoMessageBackThatHasContinued(t *testing.T) {
	t.Parallel()
	d := dispute(t)
	no := refusedLate(d.unknown)
	settleAll(t, d.l, []ledger.Settlement{no})
	j := ledger.Resolution{
		Seq: d.m.Seq, Key: "k", As: ledger.NotTaken, Settlement: &no, Move: &ledger.Move{
			State: ledger.Retry, Reason: "refused", Tried: true,
		},
	}
	execute(t, d.lock, `begin`)
	execute(t, d.lock, `update dispatcher.messages
		set state = 'sending', attempts = 2, next_at = null`)
	execute(t, d.lock, `insert into dispatcher.attempts (message_seq, attempt, channel, reason,
		segments, price_micros, currency, claimed_at, instance)
		select message_seq, 2, channel, 'fallback', segments, price_micros, currency, now(),
		  instance from dispatcher.all_attempts`)
	done := waiting(t, d.see, func() error {
		ended, err := d.other.Ambiguities.Resolve(t.Context(), &j)
		if !ended {
			t.Error("the ambiguity was not closed")
		}
		return err
	})
	execute(t, d.lock, `commit`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := scalar[string](t, d.see, seeAmbiguity); got != "sending refused not_taken closed" {
		t.Error(got)
	}
}

// TestALateRefusalAfterAResolutionFollowsTheLastCommit: the ambiguity is resolved while the message
// waits to be repeated, and the late answer waits for that lock.
func TestALateRefusalAfterAResolutionFollowsTheLastCommit(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, lock, see := rig.l, rig.db, raw(t, rig.url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	lost := repeat(m, 1)
	settleAll(t, l, []ledger.Settlement{lost})
	execute(t, lock, `begin`)
	execute(t, lock, `select from dispatcher.attempts for update`)
	done := waiting(t, see, func() error {
		return l.Settlements.Settle(t.Context(), []ledger.Settlement{refusedLate(lost)})
	})
	execute(t, lock, `update dispatcher.messages
		set state = 'unknown', same_key = null, same_key_until = null, same_key_account = null,
		pinned = null, next_at = null, finished_at = now()`)
	execute(t, lock, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, see,
		`select concat_ws(' ', state, reason) from dispatcher.message_states`); got != "retry refused" {
		t.Errorf("the message is %s", got)
	}
}
