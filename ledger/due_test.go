package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestEveryMessageThatComesDueIsInDue whatever claims, settlements, receipts and wakes do. Besides,
// every held slot is in held, and the counters are right.
func TestEveryMessageThatComesDueIsInDue(t *testing.T) {
	t.Parallel()
	b := newBusiness(t)
	tier.Check(t, func(rt *rapid.T) {
		b.goOn(rt, func(name string) {
			if got := amiss(t, b.db, always...); got != "" {
				rt.Fatalf("after %s: %s", name, got)
			}
		})
	})
	for what, sql := range map[string]string{
		"messages in due": `select count(*) from dispatcher.due`,
		"reasons in due":  `select count(distinct (state, reason, waits_for)) from dispatcher.due`,
		"ended messages":  `select count(*) from dispatcher.message_states where finished_at is not null`,
		"repeated ones":   `select count(*) from dispatcher.all_attempts where attempt > 1`,
	} {
		if n := scalar[int](t, b.db, sql); n < 3 {
			t.Errorf("there are %d %s", n, what)
		}
	}
}

// business does at random what processes do.
type business struct {
	t *testing.T
	*rig
	today  ledger.Day
	stored int
	// limited says that channel a and tenant shop have limits.
	limited bool
}

func newBusiness(t *testing.T) *business {
	b := &business{t: t, rig: lend(t)}
	apply(t, b.l, ledger.ChannelSpec{Name: "a", ActiveMax: 40}, ledger.ChannelSpec{Name: "b"})
	b.today = ledger.DayAt(scalar[time.Time](t, b.db, `select clock_timestamp()`))
	t.Cleanup(func() { b.l.Believe(b.today, 0) }) // the rig is used again
	return b
}

// route applies the routing, with other limits than before if there are any.
func (b *business) route(random *rand.Rand) {
	next := ledger.NewRouting{
		Author: "test", Document: "routes: []",
		Channels: []ledger.ChannelSpec{{Name: "a", ActiveMax: 40}, {Name: "b"}},
	}
	if b.limited {
		most := int64(10 + random.IntN(20))
		next.Channels[0].Limits = []admission.Limit{
			limit(admission.Second, most), limit(admission.Hour, 1e6),
			scoped(tenant("shop"), admission.Second, most),
		}
		next.Limits = []admission.Limit{
			scoped(tenant("shop"), admission.Minute, 1e6), budget(tenant("shop"), 1e9),
		}[random.IntN(2):]
	}
	if _, err := b.l.Routing.Apply(b.t.Context(), next); err != nil {
		b.t.Fatal(err)
	}
}

// goOn does a few random things, and calls look after each.
func (b *business) goOn(rt *rapid.T, look func(step string)) {
	steps := map[string]func(*rand.Rand){
		"claim": b.claim, "settle": b.settle, "receive": b.receive, "wake": b.wake,
		"time": b.timePasses, "sweep": b.sweep,
	}
	names := []string{"claim", "claim", "settle", "settle", "receive", "wake", "time", "sweep"}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 12).Draw(rt, "steps") {
		steps[name](rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)))
		look(name)
	}
}

// claim takes new and due messages and decides about them at random. The new ones are of one day or
// the next.
func (b *business) claim(random *rand.Rand) {
	b.l.Believe(b.today+ledger.Day(random.IntN(2)), 0)
	want := ledger.Claim{Due: random.IntN(20), Channels: []string{"a", "b"}}
	if b.limited {
		want.Scopes = []ledger.ScopeRef{{Scope: tenant("shop")}, {Channel: "a", Scope: tenant("shop")}}
	}
	for range random.IntN(8) {
		b.stored++
		m := message(fmt.Sprintf("m%d", b.stored))
		m.Sender = []string{"", "ACME"}[random.IntN(2)]
		m.Lane, m.Tenant = []string{"otp", "bulk"}[random.IntN(2)],
			[]string{"shop", "bank"}[random.IntN(2)]
		m.Plan.FirstChoice = []string{"a", "b"}[random.IntN(2)]
		if random.IntN(5) == 0 {
			m.State, m.NextAt = ledger.Scheduled, time.Now().Add(time.Hour)
		}
		want.Messages = append(want.Messages, m)
	}
	err := runClaim(b.t.Context(), b.l, want, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		for i := range seen.Messages {
			m, each := &seen.Messages[i], &d.Each[i]
			switch {
			case m.State == ledger.Scheduled && seen.Intakes[i] == ledger.Fresh:
			case seen.Intakes[i] == ledger.Due && random.IntN(8) == 0: // left as it is
			case random.IntN(6) == 0:
				*each = ledger.Decision{State: ledger.Failed, Reason: "expired", Plan: m.Plan}
			case random.IntN(3) == 0:
				*each = ledger.Decision{
					State: ledger.Waiting, Reason: []string{"no_slot", "limit"}[random.IntN(2)],
					NextAt: seen.Now.Add(time.Duration(random.IntN(60)) * time.Minute),
					Plan:   m.Plan, WaitsFor: []string{"", "a", "a 1d"}[random.IntN(3)],
					Seen: []byte(`{}`),
				}
			default:
				*each = sendOrWait(seen, m, random)
			}
		}
		return d, nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// sendOrWait sends a message to a channel, with its ticket where it has one.
func sendOrWait(seen *ledger.Seen, m *ledger.Message, random *rand.Rand) ledger.Decision {
	for i := range seen.Channels {
		seen.Channels[i].Gate.Roll(seen.Now, time.UTC)
	}
	for i := range seen.Scoped {
		for j := range seen.Scoped[i].Counters {
			seen.Scoped[i].Counters[j].Roll(seen.Now, time.UTC)
		}
	}
	if m.Ticket != nil && random.IntN(2) == 0 {
		for i := range seen.Channels {
			if c := &seen.Channels[i]; c.Name == m.Pinned && takeAll(seen, c, m.Tenant) {
				ticket := m.Ticket.CheckIn(seen.Now)
				return ledger.Decision{State: ledger.Sending, Plan: m.Plan, Attempt: ledger.Attempt{
					Number: m.Attempts + 1, Channel: c.Name, Reason: ledger.ByRetry, Segments: 1,
					PriceMicros: 28000, Currency: "GBP", Ticket: &ticket,
				}}
			}
		}
	}
	for i := range seen.Channels {
		if c := &seen.Channels[i]; c.Gate.Active.Free() && takeAll(seen, c, m.Tenant) {
			c.Gate.Active.Count++
			return ledger.Decision{State: ledger.Sending, Plan: m.Plan, Attempt: ledger.Attempt{
				Number: m.Attempts + 1, Channel: c.Name, Reason: ledger.ByFirstChoice, Segments: 1,
				PriceMicros: 28000, Currency: "GBP",
			}}
		}
	}
	return ledger.Decision{
		State: ledger.Waiting, Reason: "no_slot", NextAt: seen.Now.Add(time.Minute), Plan: m.Plan,
		Seen: []byte(`{"a":"no_slot"}`),
	}
}

// takeAll takes a unit of all limits that count a message of the tenant on the channel, or nothing.
func takeAll(seen *ledger.Seen, c *ledger.ChannelState, tenant string) bool {
	at := momentOf(seen)
	var accounts []admission.Account
	for i := range c.Gate.Counters {
		accounts = append(accounts, admission.Account{
			Counter: &c.Gate.Counters[i], Rate: c.Gate.Ease.RateAt(at.Now),
		})
	}
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		for j := range s.Counters {
			if (s.Channel == "" || s.Channel == c.Name) && s.Scope.Tenant == tenant {
				accounts = append(accounts, admission.Account{Counter: &s.Counters[j], Rate: 1})
			}
		}
	}
	need := &admission.Need{Segments: 1, Micros: 28000}
	release, exclusion := admission.Fit(at, accounts, need)
	if exclusion == nil {
		admission.Take(at, accounts, need, release)
	}
	return exclusion == nil
}

// open are the attempts without an answer, and some unknown ones.
func (b *business) open(random *rand.Rand) (messages []ledger.Message) {
	rows, err := b.db.Query(b.t.Context(), `
		select a.message_seq, m.id, a.attempt - 1 as attempts, a.channel as pinned
		from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
		where a.outcome is null or a.outcome = 'unknown' and a.message_seq % 4 = $1
		order by hashint8(a.message_seq + $1) limit 6`, random.IntN(4))
	if err != nil {
		b.t.Fatal(err)
	}
	var m ledger.Message
	if _, err := pgx.ForEachRow(rows, []any{&m.Seq, &m.ID, &m.Attempts, &m.Pinned}, func() error {
		messages = append(messages, m)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return messages
}

// settle answers some attempts.
func (b *business) settle(random *rand.Rand) {
	var all []ledger.Settlement
	for _, m := range b.open(random) {
		var s ledger.Settlement
		switch random.IntN(6) {
		case 0, 1:
			s = accepted([]ledger.Message{m})[0]
			s.Await, s.Hold = time.Hour, time.Hour*time.Duration(random.IntN(2))
			if b.limited && random.IntN(2) == 0 { // it cost less than the claim took for it
				s.PriceMicros -= 1000
				s.Refunds = []ledger.Refund{{
					ScopeRef: ledger.ScopeRef{Scope: tenant("shop")}, Window: admission.Day, Micros: 1000,
				}}
			}
		case 2:
			s = throttled([]ledger.Message{m}, time.Hour*time.Duration(random.IntN(2)))[0]
			s.Pinned = m.Pinned
		case 3:
			s = unknown(m)
			s.Attempt = m.Attempts + 1
		case 4:
			s = unknown(m)
			s.Attempt, s.State, s.Reason, s.PossibleDuplicate = m.Attempts+1, ledger.Retry,
				"unknown", true
		default:
			s = ledger.Settlement{
				Seq: m.Seq, ID: m.ID, Attempt: m.Attempts + 1, Outcome: provider.Refused,
				State: ledger.Waiting, Reason: "no_slot", Tried: true,
				NextAt: time.Now().Add(time.Duration(random.IntN(60)) * time.Minute),
			}
		}
		all = append(all, s)
	}
	settleAll(b.t, b.l, all)
}

// receive brings receipts for some attempts, with and without key.
func (b *business) receive(random *rand.Rand) {
	var receipts []ledger.Receipt
	for _, m := range b.open(random) {
		r := receipt("ref-"+m.ID, provider.Delivered)
		if random.IntN(2) == 0 {
			r.Seq, r.Attempt = m.Seq, m.Attempts+1
		}
		r.Channel = m.Pinned
		receipts = append(receipts, r)
	}
	for range 4 {
		id := fmt.Sprintf("ref-m%d", 1+random.IntN(b.stored+1))
		receipts = append(receipts, receipt(id, []provider.ReceiptState{
			provider.Delivered, provider.Undelivered, provider.Pending,
		}[random.IntN(3)]))
	}
	receive(b.t, b.l, receipts...)
}

// wake wakes the messages that wait for something, or all.
func (b *business) wake(random *rand.Rand) {
	if random.IntN(3) == 0 {
		b.route(random)
		return
	}
	if err := b.l.Claims.WakeFor(b.t.Context(), []string{"a", "a 1d"}, 2); err != nil {
		b.t.Fatal(err)
	}
}

// timePasses ends the time of some holds, waits and expected receipts.
func (b *business) timePasses(random *rand.Rand) {
	at := random.IntN(3)
	for _, sql := range []string{
		`update dispatcher.messages set next_at = now(), expires_at = expires_at - interval '1 s'
			where next_at > now() and seq % 3 = $1`,
		`update dispatcher.attempts set held_until = now()
			where held_until > now() and message_seq % 3 = $1`,
		`with u as (update dispatcher.receipts set due_at = now(), look_at = case
			when look_at is not null then now() end where due_at > now() and message_seq % 3 = $1
			returning message_seq)
			insert into dispatcher.awaited (due_at, seqs) select now(), array_agg(message_seq) from u
			having count(*) > 0`,
	} {
		execute(b.t, b.db, sql, at)
	}
}

// sweep does what the background loops do.
func (b *business) sweep(*rand.Rand) {
	release(b.t, b.l)
	overdue(b.t, b.l)
}
