package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ContradictionRecord is an attempt that its provider answered it did not take, and that a receipt
// of the same provider calls delivered. It holds no number and no text.
type ContradictionRecord struct {
	ID, Lane, Tenant, Channel string
	Attempt                   int
	// Outcome and Code are what the provider answered, and Reference is the id that the receipt
	// names; it may be empty.
	Outcome, Code, Reference string
	ReceivedAt               time.Time // when the receipt came
	State                    State     // of the message
	PossibleDuplicate        bool
}

// recentContradictions is for how long contradictions are listed among what is open.
const recentContradictions = 7 * 24 * time.Hour

// Contradictions lists those that match, oldest first, limit at most. Those that are older than
// seven days count as ended.
func (s *Ambiguities) Contradictions(ctx context.Context, f *AmbiguousFilter, limit int) ([]ContradictionRecord, error) {
	return rows(ctx, s.db, scanContradiction, `
		select m.id, m.lane, m.tenant, a.channel, a.attempt, a.outcome,
		  coalesce(a.provider_code, ''), coalesce(r.reference, a.provider_reference, ''),
		  a.contradicted_at, m.state, m.possible_duplicate
		from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
		left join lateral (
		  select nullif(split_part(r.reference, ' ', 1), '') as reference from dispatcher.receipts r
		  where r.message_seq = a.message_seq and r.attempt = a.attempt and r.part is null
		    and r.state = 'delivered'
		  order by r.received_at limit 1) r on true
		where a.contradicted_at is not null and ($1 or a.contradicted_at > now() - $5::interval)
		  and ($2 = '' or a.channel = $2) and ($3 = '' or m.lane = $3)
		    and ($4::timestamptz is null or a.contradicted_at < $4)
		order by a.contradicted_at, a.message_seq limit $6`, append(f.arguments(), recentContradictions, limit)...)
}

func scanContradiction(r pgx.CollectableRow) (c ContradictionRecord, err error) {
	err = r.Scan(&c.ID, &c.Lane, &c.Tenant, &c.Channel, &c.Attempt, &c.Outcome, &c.Code, &c.Reference, &c.ReceivedAt, &c.State, &c.PossibleDuplicate)
	c.ReceivedAt = c.ReceivedAt.UTC()
	return c, err
}

// otherIDs are the ids by which receipts with our key name the attempts of a message, and their
// answers do not, by attempt.
func (s *Ambiguities) otherIDs(ctx context.Context, seq int64) (map[int][]string, error) {
	type named struct {
		attempt   int
		reference string
	}
	all, err := rows(ctx, s.db, func(r pgx.CollectableRow) (n named, err error) {
		err = r.Scan(&n.attempt, &n.reference)
		return n, err
	}, `
		select r.attempt, r.reference from dispatcher.receipts r
		join dispatcher.attempts a on a.message_seq = r.message_seq and a.attempt = r.attempt
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
