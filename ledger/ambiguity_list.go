package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// AmbiguityRecord is an ambiguity for people to look at. It holds no number and no text.
type AmbiguityRecord struct {
	Seq                       int64
	ID, Lane, Tenant, Channel string
	Attempt, Last             int // the first and the latest attempt under its key
	Segments                  int
	PriceMicros               int64
	Currency                  string
	Code                      string // why there was no answer
	Step                      Step
	OpenedAt                  time.Time
	Until                     time.Time  // when the search ends, or ended
	ClosedAt                  time.Time  // when it was resolved; zero while it is open
	Asked                     int        // tries so far
	ResolvedAs                ResolvedAs // empty while it is open
	Author, Note              string
	// Login is the database's login that settled it, and Via how that came in; empty where it was not
	// recorded.
	Login string
	Via   Via
}

// AmbiguousFilter selects ambiguous attempts. The zero value selects all that are still being
// resolved.
type AmbiguousFilter struct {
	// Ended includes those that have ended although nobody knows whether they were taken.
	Ended bool
	// Channel, Lane and Tenant are names, Code is why there was no answer; empty means any.
	Channel, Lane, Tenant, Code string
	// Since and Before bound when the attempt became ambiguous: at Since or later, and earlier than
	// Before. Zero means any time.
	Since, Before time.Time
}

// fromAmbiguous are the ambiguities with their messages and latest attempts.
const fromAmbiguous = `
	from facts.ambiguous d
	join facts.stored_messages m on m.seq = d.message_seq
	join facts.stored_attempts a on a.message_seq = d.message_seq and a.attempt = d.last`

// ambiguities selects the columns that scanAmbiguityRecord reads.
const ambiguities = `
	select m.seq, m.id, m.lane, m.tenant, a.channel, d.attempt, d.last, a.segments,
	  a.price_micros, a.currency, coalesce(a.provider_code, ''),
	  d.step, d.opened_at, least(d.until, d.closed_at), d.asked, coalesce(d.verdict, ''), d.author,
	  d.note, d.closed_at, d.login, d.via` + fromAmbiguous

// matching is the condition of a filter; $1 to $7 are its arguments.
const matching = `
	where a.outcome = 'unknown'
	  and (d.next_at is not null or $1 and d.verdict in ('final', 'resent'))
	  and ($2 = '' or a.channel = $2) and ($3 = '' or m.lane = $3)
	  and ($4::timestamptz is null or d.opened_at < $4)
	  and ($5::timestamptz is null or d.opened_at >= $5)
	  and ($6 = '' or m.tenant = $6) and ($7 = '' or a.provider_code = $7)`

const (
	listAmbiguous = ambiguities + matching + `
	  and (d.opened_at, d.message_seq, d.attempt) > ($8::timestamptz, $9::bigint, $10::int)
	order by d.opened_at, d.message_seq, d.attempt limit $11`

	countAmbiguous = `select count(*)` + fromAmbiguous + matching

	// ambiguitiesOf reads all ambiguities of one message.
	ambiguitiesOf = ambiguities + `
	where d.message_seq = $1 order by d.attempt`
)

func (f *AmbiguousFilter) arguments() []any {
	return []any{
		f.Ended, f.Channel, f.Lane, instant(f.Before), instant(f.Since), f.Tenant, f.Code,
	}
}

// List lists the attempts that match, oldest first, limit at most.
func (s *Ambiguities) List(
	ctx context.Context, f *AmbiguousFilter, limit int,
) ([]AmbiguityRecord, error) {
	return s.After(ctx, f, &AmbiguityRecord{}, limit)
}

// After lists the attempts that follow last, so that all can be read page by page.
func (s *Ambiguities) After(
	ctx context.Context, f *AmbiguousFilter, last *AmbiguityRecord, limit int,
) ([]AmbiguityRecord, error) {
	return rows(ctx, s.db, scanAmbiguityRecord, listAmbiguous,
		append(f.arguments(), last.OpenedAt, last.Seq, last.Attempt, limit)...)
}

// Count is how many attempts match.
func (s *Ambiguities) Count(ctx context.Context, f *AmbiguousFilter) (n int64, err error) {
	err = s.reports.QueryRow(ctx, countAmbiguous, f.arguments()...).Scan(&n)
	return n, wrap("count ambiguous attempts", err)
}

// of returns all ambiguities of one message.
func (s *Ambiguities) of(ctx context.Context, seq int64) ([]AmbiguityRecord, error) {
	return rows(ctx, s.db, scanAmbiguityRecord, ambiguitiesOf, seq)
}

func scanAmbiguityRecord(r pgx.CollectableRow) (a AmbiguityRecord, err error) {
	var closed pgtype.Timestamptz
	err = r.Scan(&a.Seq, &a.ID, &a.Lane, &a.Tenant, &a.Channel, &a.Attempt, &a.Last, &a.Segments,
		&a.PriceMicros, &a.Currency, &a.Code,
		&a.Step, &a.OpenedAt, &a.Until, &a.Asked, &a.ResolvedAs, &a.Author, &a.Note,
		&closed, &a.Login, &a.Via)
	a.OpenedAt, a.Until, a.ClosedAt = a.OpenedAt.UTC(), a.Until.UTC(), moment(closed)
	return a, err
}

// ContradictionRecord is an attempt that its provider denied, although a receipt of the same
// provider says that it was delivered. It holds no number and no text.
type ContradictionRecord struct {
	ID, Lane, Tenant, Channel string
	Attempt                   int
	// Outcome and Code are what the provider answered, and Reference is the id that the receipt names;
	// it may be empty.
	Outcome, Code, Reference string
	ReceivedAt               time.Time // when the receipt came
	State                    State     // of the message
	PossibleDuplicate        bool
}

// recentContradictions is for how long a contradiction counts as open.
const recentContradictions = 7 * 24 * time.Hour

// Contradictions lists the contradictions that match, oldest first, limit at most. Those older than
// seven days count as ended.
func (s *Ambiguities) Contradictions(
	ctx context.Context, f *AmbiguousFilter, limit int,
) ([]ContradictionRecord, error) {
	return rows(ctx, s.db, scanContradiction, `
		select m.id, m.lane, m.tenant, a.channel, a.attempt, a.outcome,
		  coalesce(a.provider_code, ''), coalesce(r.reference, a.provider_reference, ''),
		  a.contradicted_at, m.state, m.possible_duplicate
		from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
		left join lateral (
		  select nullif(split_part(r.reference, ' ', 1), '') as reference from dispatcher.all_receipts r
		  where r.message_seq = a.message_seq and r.attempt = a.attempt and r.part is null
		    and r.state = 'delivered'
		  order by r.received_at limit 1) r on true
		where a.contradicted_at is not null and ($1 or a.contradicted_at > now() - $8::interval)
		  and ($2 = '' or a.channel = $2) and ($3 = '' or m.lane = $3)
		  and ($4::timestamptz is null or a.contradicted_at < $4)
		  and ($5::timestamptz is null or a.contradicted_at >= $5)
		  and ($6 = '' or m.tenant = $6) and ($7 = '' or a.provider_code = $7)
		order by a.contradicted_at, a.message_seq
		limit $9`, append(f.arguments(), recentContradictions, limit)...)
}

func scanContradiction(r pgx.CollectableRow) (c ContradictionRecord, err error) {
	err = r.Scan(&c.ID, &c.Lane, &c.Tenant, &c.Channel, &c.Attempt, &c.Outcome, &c.Code,
		&c.Reference, &c.ReceivedAt, &c.State, &c.PossibleDuplicate)
	c.ReceivedAt = c.ReceivedAt.UTC()
	return c, err
}

// otherIDs returns, by attempt, the ids that came in receipts with our key but not in the
// provider's answer.
func (s *Ambiguities) otherIDs(ctx context.Context, seq int64) (map[int][]string, error) {
	type named struct {
		attempt   int
		reference string
	}
	all, err := rows(ctx, s.db, func(r pgx.CollectableRow) (n named, err error) {
		err = r.Scan(&n.attempt, &n.reference)
		return n, err
	}, `
		select r.attempt, r.reference from facts.receipts r
		join facts.stored_attempts a on a.message_seq = r.message_seq and a.attempt = r.attempt
		where r.message_seq = $1 and r.part is null and r.received_at is not null
		  and position(' ' in r.reference) = 0
		  and r.reference <> all (string_to_array(coalesce(a.provider_reference, ''), ' '))
		order by r.attempt, r.reference`, seq)
	if len(all) == 0 {
		return nil, err
	}
	out := map[int][]string{}
	for _, n := range all {
		out[n.attempt] = append(out[n.attempt], n.reference)
	}
	return out, err
}
