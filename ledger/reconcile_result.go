package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Difference is one difference between the file and the ledger.
type Difference struct {
	// Kind is ours_only, theirs_only, duplicate, segments, price, currency or outcome.
	Kind      string
	ID        string // of the message; empty for a line without one
	Attempt   int
	Line      int // 0 for an attempt without one
	Reference string
	At        time.Time
	// Ours and Theirs are the two values; amounts are decimals of Currency.
	Ours, Theirs, Currency string
}

// Total is the sum of both sides in a currency. TheirMicros is nil where the file has no price in
// it.
type Total struct {
	Currency    string
	OursMicros  int64
	TheirMicros *int64
}

// Compared is the result for a file.
type Compared struct {
	Lines int64
	// Matched counts the attempts that have a line, OursOnly the billed ones that have none, and
	// TheirsOnly the lines that have no attempt. Differing counts the other differences. Ambiguous
	// counts the unknown attempts in the period.
	Matched, OursOnly, TheirsOnly, Differing, Ambiguous int64
	Totals                                              []Total
}

// Result adds up the differences and the amounts.
func (c *Comparison) Result(ctx context.Context) (r Compared, err error) {
	err = c.conn.QueryRow(ctx, `
		select (select count(*) from theirs), (select count(*) from compared),
		  count(*) filter (where kind = 'ours_only'),
		  count(*) filter (where kind in ('theirs_only', 'duplicate')),
		  count(*) filter (where kind not in ('ours_only', 'theirs_only', 'duplicate')),
		  (select count(*) from ours where outcome = 'unknown' and segments > 0
		    and at >= $1 and at < $2)
		from found`, c.From, c.To).
		Scan(&r.Lines, &r.Matched, &r.OursOnly, &r.TheirsOnly, &r.Differing, &r.Ambiguous)
	if err != nil {
		return r, wrap("reconcile", err)
	}
	rows, err := c.conn.Query(ctx, `
		select coalesce(o.currency, t.currency), coalesce(o.micros, 0), t.micros
		from (
		  select currency, sum(micros)::bigint as micros from ours o
		  where at >= $1 and at < $2 or exists (select from compared c where c.nr = o.nr)
		  group by currency having sum(micros) > 0
		) o
		full join (
		  select currency, round(sum(nanos) / 1000.0)::bigint as micros from theirs
		  where nanos is not null group by currency having sum(nanos) <> 0
		) t on t.currency = o.currency
		order by 1`, c.From, c.To)
	if err != nil {
		return r, wrap("reconcile", err)
	}
	r.Totals, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Total])
	return r, wrap("reconcile", err)
}

// Differences returns the first limit differences, by kind and time; 0 returns all.
func (c *Comparison) Differences(ctx context.Context, limit int) ([]Difference, error) {
	rows, err := c.conn.Query(ctx, `
		select f.kind, coalesce(o.id, ''), coalesce(o.attempt, 0)::integer, coalesce(f.line, 0),
		  coalesce(f.reference, ''), coalesce(f.at, 'epoch'), f.ours, f.theirs, f.currency
		from found f left join ours o on o.nr = f.nr
		order by f.kind, f.at, f.line, o.id, o.attempt limit nullif($1, 0)`, limit)
	if err != nil {
		return nil, wrap("reconcile", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Difference])
	return all, wrap("reconcile", err)
}

// Proof is an ambiguous attempt for which the file shows whether the provider took it.
type Proof struct {
	ID        string
	Attempt   int
	Taken     bool
	Reference string // ids that were not known before, separated by spaces
	Line      int    // 0 where the file has none
	At        time.Time
}

// surelyCovered is how far the file must reach on both sides of an attempt, before a missing line
// proves that the attempt was not taken.
const surelyCovered = time.Hour

// readProofs finds the ambiguous attempts that the file resolves.
//
// An attempt was taken when all its segments have lines, which can belong to no other attempt, see
// LinePair. It was not taken when it has a line that says so. Without a line it was not taken if
// all of this is true:
//
//   - The file is complete, and the attempt is at least an hour from both of its ends.
//   - Within an hour before it and an hour after it the file has messages of the channel, and none
//     is missing within an hour.
//   - No line could belong to it: no extra line without number near it, and none of the same number
//     at any time, as clocks may be wrong; and no line that may as well belong to another attempt
//     to that number.
const readProofs = `
	with open as materialized (
	  select o.*, c.taken, c.sure, c.segments as said, c.line from ours o
	  left join compared c on c.nr = o.nr
	  where o.outcome = 'unknown' and o.segments > 0
	), named as (
	  select nr, string_agg(reference, ' ' order by line) as names from (
	    select o.nr, t.reference, min(t.line) as line
	    from open o join pairs p on p.nr = o.nr join theirs t on t.line = p.line
	    where t.taken and t.reference <> all (coalesce(o.refs, '{}')) group by 1, 2) one
	  group by nr
	), unsure as materialized (
	  select distinct o.number from compared c join ours o on o.nr = c.nr where not c.sure
	), hours as materialized (
	  select min(o.at) as first, max(o.at) as last from ours o join compared c on c.nr = o.nr
	  where o.outcome = 'accepted' and c.taken group by floor(extract(epoch from o.at) / 3600)
	)
	select o.id, o.attempt::integer, coalesce(o.taken, false), coalesce(n.names, ''),
	  coalesce(o.line, 0), o.at
	from open o left join named n on n.nr = o.nr
	where case
	  when o.taken then o.sure and coalesce(o.said, o.segments) >= o.segments
	  when o.billed > 0 then false
	  when not o.taken then o.sure
	  else $1 and o.number is not null and o.at >= $2::timestamptz + $4::interval
	    and o.at < $3::timestamptz - $4::interval
	    and exists (select from hours where first > o.at - $4::interval and first < o.at
	      or last > o.at - $4::interval and last < o.at)
	    and exists (select from hours where first < o.at + $4::interval and first > o.at
	      or last < o.at + $4::interval and last > o.at)
	    and o.number not in (select number from unsure)
	    and not exists (select from missing m
	      where m.at > o.at - $4::interval and m.at < o.at + $4::interval)
	    and not exists (select from extra e where e.at is null or o.number = any (e.numbers)
	      or coalesce(e.numbers, '{}') = '{}'
	        and e.at > o.at - $4::interval and e.at < o.at + $4::interval)
	  end
	order by o.at, o.id, o.attempt`

// Proofs returns the ambiguous attempts that the file resolves, oldest first.
func (c *Comparison) Proofs(ctx context.Context) ([]Proof, error) {
	rows, err := c.conn.Query(ctx, readProofs, c.Complete, c.From, c.To, surelyCovered)
	if err != nil {
		return nil, wrap("reconcile", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Proof])
	return all, wrap("reconcile", err)
}

// Reconciliation is a signed result.
type Reconciliation struct {
	ID             int64
	Revision       int
	At             time.Time
	Author, Reason string
	// Resolved counts the ambiguous attempts that this revision resolved by the file.
	Resolved int64
}

// Signed returns the latest signed result of a file for a period; nil when there is none. digest is
// the SHA-256 of the file in hexadecimal.
func (s *Reconciliations) Signed(
	ctx context.Context, p Period, digest string,
) (*Reconciliation, error) {
	all, err := rows(ctx, s.db, pgx.RowToAddrOfStructByPos[Reconciliation], `
		select id, revision, at, author, reason, resolved from audit.reconciliations
		where channel = $1 and file_digest = $2 and from_at = $3 and to_at = $4
		order by revision desc limit 1`, p.Channel, digest, p.From, p.To)
	if err != nil || len(all) == 0 {
		return nil, wrap("look for a reconciliation", err)
	}
	return all[0], nil
}

// MayResolve reports whether the login may resolve ambiguous attempts. A login of finance may not.
func (s *Reconciliations) MayResolve(ctx context.Context) (may bool, err error) {
	err = s.reports.QueryRow(ctx, `select has_schema_privilege('dispatcher', 'usage')`).Scan(&may)
	return may, wrap("look for rights", err)
}

// ErrSigned means that somebody else has signed the same file off at the same moment.
var ErrSigned = errors.New("somebody else has signed this file off just now")

// SignOff stores the result r with all differences, as the revision after before, in one
// transaction. It sets ID, Revision and At of signed. It may return ErrSigned.
func (c *Comparison) SignOff(
	ctx context.Context, digest string, before *Reconciliation, r *Compared, signed *Reconciliation,
) error {
	signed.Revision = 1
	if before != nil {
		signed.Revision = before.Revision + 1
	}
	err := pgx.BeginFunc(ctx, c.conn, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into audit.reconciliations (channel, file_digest, from_at, to_at, revision,
			  complete, author, reason, lines, matched, ours_only, theirs_only, differences,
			  ambiguous, resolved)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
			returning id, at`, c.Channel, digest, c.From, c.To, signed.Revision, c.Complete,
			storable(signed.Author), storable(signed.Reason), r.Lines, r.Matched, r.OursOnly,
			r.TheirsOnly, r.Differing, r.Ambiguous, signed.Resolved).Scan(&signed.ID, &signed.At)
		if err != nil {
			return err
		}
		for _, t := range r.Totals {
			if _, err := tx.Exec(ctx, `
				insert into audit.reconciliation_totals values ($1, $2, $3, $4)`,
				signed.ID, t.Currency, t.OursMicros, t.TheirMicros); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `
			insert into audit.reconciliation_differences (reconciliation, kind, message_id, attempt,
			  line, reference, at, ours, theirs, currency)
			select $1, f.kind, o.id, o.attempt, f.line, f.reference, f.at, f.ours, f.theirs,
			  f.currency
			from found f left join ours o on o.nr = f.nr
			order by f.kind, f.at, f.line, o.id, o.attempt`, signed.ID)
		return err
	})
	if isDuplicate(err) {
		return ErrSigned
	}
	return wrap("sign off", err)
}
