package ledger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// A claim stores its first attempts in one row of dispatcher.open_claims. Their settlements insert
// them into dispatcher.attempts, so that most attempts are written once, with their outcome. Later
// attempts of a message are stored by the claim and updated by the settlement.

// openAttempts are the first attempts that this process has claimed and not settled. It is safe for
// concurrent use.
type openAttempts struct {
	mu sync.Mutex
	of map[int64]*openAttempt // by message; guarded by mu
}

// openAttempt is one of them.
type openAttempt struct {
	attempt Attempt
	claim   *openClaim
}

// openClaim is a row of open_claims.
type openClaim struct {
	key      int64 // the message of its first attempt
	instance int64
	at       time.Time // by the database's clock
	left     int       // how many of its attempts are not settled; guarded by openAttempts.mu
}

// forget forgets all attempts.
func (o *openAttempts) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of = nil
}

// add adds the attempts of a claim that was committed.
func (o *openAttempts) add(t *Tx) {
	if len(t.first) == 0 {
		return
	}
	c := &openClaim{
		key: t.seen.Messages[t.first[0]].Seq, instance: t.instance, at: t.seen.Now,
		left: len(t.first),
	}
	all := make([]openAttempt, len(t.first))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[int64]*openAttempt{}
	}
	for i, at := range t.first {
		all[i] = openAttempt{t.decisions.Each[at].Attempt, c}
		o.of[t.seen.Messages[at].Seq] = &all[i]
	}
}

// find sets settling.open.
func (o *openAttempts) find(order []settling) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range order {
		if order[i].Attempt == 1 {
			order[i].open = o.of[order[i].Seq]
		}
	}
}

// over returns the claims of which nothing is open once these settlements are stored. Their rows
// can be deleted with them.
func (o *openAttempts) over(order []settling) []*openClaim {
	o.mu.Lock()
	defer o.mu.Unlock()
	var over []*openClaim
	left := map[*openClaim]int{}
	for i, s := range order {
		again := i > 0 && order[i-1].open == s.open
		if s.open == nil || again || o.of[s.Seq] != s.open { // another call has settled it
			continue
		}
		c := s.open.claim
		if _, seen := left[c]; !seen {
			left[c] = c.left
		}
		if left[c]--; left[c] == 0 {
			over = append(over, c)
		}
	}
	return over
}

// settled removes attempts that are settled now.
func (o *openAttempts) settled(order []settling) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range order {
		if s.open != nil && o.of[s.Seq] == s.open {
			delete(o.of, s.Seq)
			s.open.claim.left--
		}
	}
}

// stored removes the attempts of claims that have rows now, and whose rows are deleted.
func (o *openAttempts) stored(keys []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.of, func(_ int64, a *openAttempt) bool {
		return slices.Contains(keys, a.claim.key)
	})
}

// openClaimArrays are the parameters of insertOpenClaim.
func (t *Tx) openClaimArrays() []any {
	n := len(t.first)
	a := newOpenArrays(n)
	for i, at := range t.first {
		a.set(i, t.seen.Messages[at].Seq, &t.decisions.Each[at].Attempt)
	}
	return append([]any{t.instance, t.seen.Now}, a.arguments()...)
}

// insertOpenClaim stores the first attempts of a claim, see openClaimArrays.
const insertOpenClaim = `
	insert into dispatcher.open_claims (first_seq, instance, claimed_at, seqs, leaves_at, prices,
	  segments, channels, reasons, currencies, rankings)
	values (($3::bigint[])[1], $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// openArrays are first attempts column by column.
type openArrays struct {
	seq                                []int64
	leaves                             []pgtype.Timestamptz // nil if all leave at once
	price                              []int64
	segments                           []int16
	channel, reason, currency, ranking []string // ranking is nil if none has one
}

func newOpenArrays(n int) openArrays {
	texts, numbers := make([]string, 3*n), make([]int64, 2*n)
	return openArrays{
		seq: numbers[:n:n], price: numbers[n:], segments: make([]int16, n),
		channel: texts[:n:n], reason: texts[n : 2*n : 2*n], currency: texts[2*n:],
	}
}

func (o *openArrays) set(i int, seq int64, a *Attempt) {
	o.seq[i], o.price[i], o.segments[i] = seq, a.PriceMicros, int16(a.Segments) //nolint:gosec // A smallint.
	o.channel[i], o.reason[i], o.currency[i] = a.Channel, string(a.Reason), a.Currency
	if !a.LeavesAt.IsZero() {
		o.leaves = sized(o.leaves, len(o.seq))
		o.leaves[i] = instant(a.LeavesAt)
	}
	if len(a.Ranking) > 0 {
		o.ranking = sized(o.ranking, len(o.seq))
		o.ranking[i] = string(a.Ranking)
	}
}

func (o *openArrays) arguments() []any {
	return []any{
		o.seq, o.leaves, brief(o.price), brief(o.segments), brief(o.channel), brief(o.reason),
		brief(o.currency), o.ranking,
	}
}

// openRowArrays are the parameters of insertOpen; nil for none.
func openRowArrays(order []settling) []any {
	n := 0
	for i := range order {
		if order[i].open != nil {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	a, at := newOpenArrays(n), 0
	instance, claimed, claim := make([]int64, n), make([]pgtype.Timestamptz, n), make([]int64, n)
	for _, s := range order {
		if s.open != nil {
			a.set(at, s.Seq, &s.open.attempt)
			c := s.open.claim
			instance[at], claimed[at], claim[at] = c.instance, instant(c.at), c.key
			at++
		}
	}
	return append(a.arguments(), brief(instance), brief(claimed), brief(claim))
}

// insertOpen stores first attempts of this process without outcome, for a settlement that updates
// them. It leaves out those that have a row, and those whose claim is not in open_claims.
var insertOpen = ofDay(`
	insert into dispatcher.attempts (message_seq, attempt, leaves_at, price_micros, segments,
	  channel, reason, currency, ranking, instance, claimed_at)
	select u.seq, 1, u.leaves_at, coalesce(u.price, ($3::bigint[])[1]),
	  coalesce(u.segments, ($4::smallint[])[1]), coalesce(u.channel, ($5::text[])[1]),
	  coalesce(u.reason, ($6::text[])[1]), coalesce(u.currency, ($7::text[])[1]),
	  nullif(u.ranking, '')::jsonb, c.instance, c.claimed_at
	from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::smallint[], $5::text[],
	  $6::text[], $7::text[], $8::text[], $9::bigint[], $10::timestamptz[], $11::bigint[])
	  as u(seq, leaves_at, price, segments, channel, reason, currency, ranking, instance,
	    claimed_at, claim)
	join dispatcher.open_claims c on c.first_seq = coalesce(u.claim, ($11::bigint[])[1])
	  and c.instance = coalesce(u.instance, ($9::bigint[])[1])
	  and c.claimed_at = coalesce(u.claimed_at, ($10::timestamptz[])[1])
	order by u.seq
	on conflict (message_seq, attempt) do nothing`)

// storeAfter is how long after its claim an attempt gets a row, even if nobody has answered. So
// open_claims stays small while a provider is slow.
const storeAfter = 5 * time.Second

// storeOwn gives the attempts of this process's claims a row, if they were claimed that long ago.
// It also deletes the row of a claim that a settlement could not delete.
func (d *db) storeOwn(ctx context.Context, instance int64, ago time.Duration) error {
	stored, err := queried(ctx, d.hot, pgx.RowTo[int64], `
		select * from dispatcher.store_open_claims(array(
		  select first_seq from dispatcher.open_claims
		  where instance = $1 and claimed_at <= clock_timestamp() - $2::interval))`, instance, ago)
	d.open.stored(stored)
	return err
}

// deleteOver deletes rows of open_claims, see overArrays. It does not wait for store_open_claims,
// which deletes them too.
const deleteOver = `
	delete from dispatcher.open_claims where first_seq in (
	  select c.first_seq from unnest($1::bigint[], $2::bigint[], $3::timestamptz[])
	    as n(first_seq, instance, claimed_at)
	  join dispatcher.open_claims c using (first_seq, instance, claimed_at)
	  for update of c skip locked)`

// overArrays are the parameters of deleteOver.
func overArrays(claims []*openClaim) []any {
	n := len(claims)
	key, instance, at := make([]int64, n), make([]int64, n), make([]pgtype.Timestamptz, n)
	for i, c := range claims {
		key[i], instance[i], at[i] = c.key, c.instance, instant(c.at)
	}
	return []any{key, instance, at}
}

// firstAttempts separates first attempts from later ones. All are later ones while an instance does
// not know open_claims.
func (t *Tx) firstAttempts() (first, later []int) {
	if !t.claims.openKnown.Load() {
		return nil, t.attempts
	}
	later = slices.Clone(t.attempts)
	later = slices.DeleteFunc(later, func(at int) bool {
		if t.decisions.Each[at].Attempt.Number == 1 {
			first = append(first, at)
			return true
		}
		return false
	})
	return first, later
}
