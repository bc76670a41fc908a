package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// storm is a set of late events about messages without an answer, which two instances handle
// concurrently.
type storm struct {
	t       *testing.T
	ledgers [2]*ledger.Ledger

	lost   []ledger.Settlement // of the first attempts, by whoever took them for lost
	own    []ledger.Settlement // of the same, by whoever submitted them
	late   []ledger.Settlement // their late answers
	repeat []ledger.Settlement // of the second attempts, under the same keys
	sent   []ledger.Settlement // of all further attempts

	verdicts []ledger.Resolution // of whoever gives up, before the answer or after it
	receipts []ledger.Receipt

	mu sync.Mutex
	// the latest attempts of messages that have been claimed again; guarded by mu
	claimed map[int64]int
}

// TestAmbiguitiesRepeatsAndReceiptsContend: lost attempts are closed by two instances that know
// different things about them, submitted again under their keys, answered late, get receipts, are
// resolved and given up, while others handle what is due. There is no deadlock, no message stays
// open without being due, none is given up although it was answered, and no slot is lost.
func TestAmbiguitiesRepeatsAndReceiptsContend(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	ledgers := [2]*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}),
	}
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a", ActiveMax: 10000})
	rounds := tier.Size(1, 5)
	for round := range rounds {
		s := brew(t, ledgers, round)
		watch := throughout(t, url)
		s.rage()
		watch()
		s.calm(db)
		if n := scalar[int](t, db, `select count(*) from dispatcher.message_states
			where state in ('accepted', 'sending', 'retry')`); n != 0 {
			t.Fatalf("%d messages rest before their end", n)
		}
		if n := scalar[int](t, db,
			`select count(*) from dispatcher.receipts where due_at is not null`); n != 0 {
			t.Fatalf("%d rows are looked at for ever", n)
		}
		if got := amiss(t, db, always...); got != "" {
			t.Fatal(got)
		}
		if n := scalar[int](t, db, givenUp); n != 0 {
			t.Fatalf("%d messages were given up although they were answered", n)
		}
		endHolds(t, db)
		release(t, ledgers[0])
		if n := activeOn(t, db, "a"); n != 0 {
			t.Fatalf("%d active", n)
		}
	}
}

// givenUp counts the messages that ended as unknown, or whose channel was tried twice, although
// their provider refused them.
const givenUp = `
	select count(*) from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq
	  and a.attempt = m.attempts
	where m.state = 'unknown' and a.outcome <> 'unknown' or cardinality(m.tried) > 1`

// brew claims the messages of a round and draws their events.
func brew(t *testing.T, ledgers [2]*ledger.Ledger, round int) *storm {
	const n = 60
	s := &storm{t: t, ledgers: ledgers, claimed: map[int64]int{}}
	for i, m := range claimAll(t, ledgers[0], batch(fmt.Sprintf("s%d", round), n), "a").Messages {
		s.add(i, m, [2]string{
			fmt.Sprintf("%03d-%d-1", i*37%n, round),
			fmt.Sprintf("%03d-%d-2", i*37%n, round),
		})
	}
	return s
}

// add draws the events of one message, whose two parts have the references.
func (s *storm) add(i int, m ledger.Message, references [2]string) {
	ambiguity := func(step ledger.Step, verdict ledger.ResolvedAs) *ledger.Ambiguity {
		return &ledger.Ambiguity{
			Key: "k", Step: step, Until: time.Now().Add(time.Hour),
			NextAt: time.Now(), ResolvedAs: verdict,
		}
	}
	lost := unknown(m)
	lost.State, lost.Await, lost.Receipts, lost.Segments, lost.Ambiguity = ledger.Retry, time.Hour,
		3, 2, ambiguity(ledger.SameKey, "")
	switch i % 4 {
	case 0:
		lost.Reference = references[0]
	case 1:
		lost.State, lost.Ambiguity.Step = ledger.Unknown, ledger.AwaitReceipt
	}
	own := lost
	own.Receipts = 2
	taken := expecting(m, references[0]+" "+references[1])[0]
	taken.Segments, taken.Await, taken.Receipts = 2, time.Hour, 2
	repeat := taken
	repeat.Attempt, repeat.Hold, repeat.Ambiguity = 2, time.Hour,
		ambiguity(ledger.SameKey, ledger.Taken)
	if i%3 == 0 {
		repeat.Outcome, repeat.State, repeat.Hold, repeat.Reference,
			repeat.Ambiguity = provider.Unknown, ledger.Unknown, 0, "",
			ambiguity(ledger.AwaitReceipt, "")
	}
	sent := taken
	sent.Hold = time.Hour
	s.lost, s.own, s.repeat, s.sent = append(s.lost, lost), append(s.own, own),
		append(s.repeat, repeat), append(s.sent, sent)
	verdict := final(m)
	if i%8 > 3 {
		verdict = sentAgain(m)
	}
	s.verdicts = append(s.verdicts, verdict)
	switch {
	case i%7 == 0:
		s.late = append(s.late, taken)
	case i%3 > 0:
		s.late = append(s.late, refusedLate(lost))
	}
	for part, reference := range references {
		for _, state := range []provider.ReceiptState{provider.Pending, provider.Delivered} {
			r := receipt(reference, state)
			if i%5 == 0 && part == 1 {
				r.Reference = ""
			}
			if i%2 == 0 || r.Reference == "" {
				r.Seq, r.Attempt = m.Seq, 1
			}
			s.receipts = append(s.receipts, r)
		}
	}
}

// rage handles all events concurrently by both instances, while they handle what is due.
func (s *storm) rage() {
	said, over := context.WithCancel(s.t.Context())
	var speakers, lookers sync.WaitGroup
	for i, l := range s.ledgers {
		for _, look := range []func(*ledger.Ledger) error{s.sweep, s.claim, s.resolve} {
			lookers.Go(func() {
				for said.Err() == nil {
					s.check(look(l))
				}
			})
		}
		speakers.Go(func() { s.settle(l, s.lost, 17) })
		speakers.Go(func() { s.settle(l, s.own, 60) })
		speakers.Go(func() { s.settle(l, s.late, 5) })
		speakers.Go(func() { s.giveUp(l, i) })
		for range 2 {
			speakers.Go(func() {
				for chunk := range slices.Chunk(shuffled(s.receipts), 40) {
					_, err := l.Receipts.Receive(s.t.Context(), chunk, tellState)
					s.check(err)
				}
			})
		}
		speakers.Go(func() {
			for range 20 {
				s.settle(l, s.repeated(), 13)
			}
		})
	}
	speakers.Wait()
	over()
	lookers.Wait()
}

// calm handles all events again, and ends the time of everything that is awaited.
func (s *storm) calm(db *pgx.Conn) {
	settleAll(s.t, s.ledgers[0], s.lost)
	for range 3 {
		for s.claimedSome() {
		}
		s.settle(s.ledgers[1], s.repeated(), 60)
		receive(s.t, s.ledgers[0], s.receipts...)
		lateForAll(s.t, db, s.ledgers[1])
	}
}

// claimedSome claims what is due, and reports whether there was any.
func (s *storm) claimedSome() bool {
	before := len(s.repeated())
	s.check(s.claim(s.ledgers[0]))
	return len(s.repeated()) > before
}

func (s *storm) check(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

func (s *storm) settle(l *ledger.Ledger, settlements []ledger.Settlement, n int) {
	for chunk := range slices.Chunk(shuffled(settlements), n) {
		s.check(l.Settlements.Settle(s.t.Context(), chunk))
	}
}

// repeated are the settlements of the further attempts that have been claimed.
func (s *storm) repeated() (all []ledger.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.repeat {
		for n := 2; n <= s.claimed[r.Seq]; n++ {
			if n > 2 {
				r = s.sent[i]
				r.Attempt = n
			}
			all = append(all, r)
		}
	}
	return all
}

// giveUp ends every second ambiguity that has no answer.
func (s *storm) giveUp(l *ledger.Ledger, odd int) {
	for i, j := range s.verdicts {
		if i%2 == odd {
			_, err := l.Ambiguities.Resolve(s.t.Context(), &j)
			s.check(err)
		}
	}
}

// sweep calls Overdue and gives slots back.
func (s *storm) sweep(l *ledger.Ledger) error {
	if _, err := l.Receipts.Overdue(s.t.Context(), 1000, tellState); err != nil {
		return err
	}
	_, err := l.Settlements.ReleaseSlots(s.t.Context(), time.Hour)
	return err
}

// claim claims further attempts.
func (s *storm) claim(l *ledger.Ledger) error {
	var due []ledger.Message
	err := runClaim(s.t.Context(), l, ledger.Claim{
		Due: 20, Lanes: []string{"otp"},
		Channels: []string{"a"},
	}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		due = seen.Messages
		return give(seen)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range due {
		if m := &due[i]; err == nil {
			s.claimed[m.Seq] = max(s.claimed[m.Seq], m.Attempts+1)
		}
	}
	return err
}

// resolve resolves ambiguities as taken: those that have an answer, and some of the others.
func (s *storm) resolve(l *ledger.Ledger) error {
	ambiguities, err := l.Ambiguities.Due(s.t.Context(), 30, 50*time.Millisecond)
	for i := range ambiguities {
		d := &ambiguities[i]
		answered := d.Answer == "accepted"
		if !answered && rand.IntN(4) > 0 {
			continue
		}
		j := ledger.Resolution{Seq: d.Message.Seq, Key: d.Key, As: ledger.Taken, Author: "ops"}
		if !answered || d.Attempt.Number != d.First {
			truth := expecting(d.Message, d.Reference)[0]
			truth.Attempt, truth.Await, truth.Segments = d.Attempt.Number, d.Await, 2
			j.Settlement = &truth
		}
		if _, err := l.Ambiguities.Resolve(s.t.Context(), &j); err != nil {
			return err
		}
	}
	return err
}

func shuffled[T any](s []T) []T {
	s = slices.Clone(s)
	rand.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}
