package ledger

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reconciliations compares the lines of a provider with the attempts on record, and stores signed
// results. It reads and writes only views, so a login of finance may use it.
type Reconciliations struct{ *db }

// ProviderLine is a line of an invoice or a log. It has hashes in place of the number.
type ProviderLine struct {
	Row       int
	Reference string  // empty for none
	Numbers   []int64 // hash of the number under each key; none where the file has no number
	At        time.Time
	Segments  int // 0 where the file does not say
	// Nanos is in billionths of Currency, with the sign that the file has. Load finds out which sign
	// charges have: some vendors write them with a minus.
	Nanos    int64
	Priced   bool
	Currency string
	Taken    bool // the provider took the message; false when the line says that it did not
}

// Period is the time that is compared, on one channel.
type Period struct {
	Channel  string
	From, To time.Time
	// Complete says that the file has everything that the provider took in that time.
	Complete bool
}

// Comparison compares one file with the attempts on a channel. It has a session with temporary
// tables: theirs (lines of the file), ours (attempts), pairs of both, and compared, one row for
// each attempt that has lines. They are gone after Close.
type Comparison struct {
	conn *pgx.Conn
	Period
}

// beginComparison sets the planner for statements that read whole tables once, and creates the
// table theirs.
const beginComparison = `
	set application_name = 'dispatcher reconcile'; set enable_seqscan = on; set jit = off;
	set enable_hashjoin = on; set enable_mergejoin = on; set enable_partitionwise_join = on;
	set plan_cache_mode = force_custom_plan; set work_mem = '48MB'; set temp_buffers = '32MB';
	create temporary table theirs (line integer, reference text, numbers bigint[], at timestamptz,
	  segments integer, nanos bigint, currency text, taken boolean)`

// Compare begins a comparison. The caller must Close it.
func (s *Reconciliations) Compare(ctx context.Context) (*Comparison, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, wrap("reconcile", err)
	}
	if _, err := conn.Exec(ctx, beginComparison); err != nil {
		closeConn(conn)
		return nil, wrap("reconcile", err)
	}
	return &Comparison{conn: conn}, nil
}

// Close ends the session.
func (c *Comparison) Close() { closeConn(c.conn) }

// Load reads the lines of a file from next. It returns how many there are, and the first and the
// last time. Charges have the sign that most of the priced lines have; the others are credits.
func (c *Comparison) Load(
	ctx context.Context, next func(*ProviderLine) (bool, error),
) (lines int64, first, last time.Time, err error) {
	var l ProviderLine
	row, minus := make([]any, 8), 0 // minus counts priced lines below 0, less those above it
	lines, err = c.conn.CopyFrom(ctx, pgx.Identifier{"theirs"}, []string{
		"line", "reference", "numbers", "at", "segments", "nanos", "currency", "taken",
	}, pgx.CopyFromFunc(func() ([]any, error) {
		if more, err := next(&l); err != nil || !more {
			return nil, err
		}
		clear(row)
		row[0], row[2], row[7] = l.Row, l.Numbers, l.Taken
		if l.Reference != "" {
			row[1] = l.Reference
		}
		if !l.At.IsZero() {
			row[3] = l.At
			if first.IsZero() || l.At.Before(first) {
				first = l.At
			}
			if l.At.After(last) {
				last = l.At
			}
		}
		if l.Segments > 0 {
			row[4] = l.Segments
		}
		if l.Priced {
			row[5], row[6] = l.Nanos, l.Currency
			minus -= cmp.Compare(l.Nanos, 0)
		}
		return row, nil
	}))
	if err == nil && minus > 0 {
		_, err = c.conn.Exec(ctx, `update theirs set nanos = -nanos`)
	}
	if err == nil {
		_, err = c.conn.Exec(ctx, `analyze theirs`)
	}
	return lines, first, last, wrap("reconcile", err)
}

// clocksApart is how far from the period attempts are looked for by reference, because the file may
// be in a time zone that was not stated.
const clocksApart = 26 * time.Hour

// readOurs creates ours: the attempts that left, or may have, with the segments and micros that are
// certainly billed. refs are their references, including those from receipts with our key. A
// reference has at most as many lines as it has segments ("most"); further lines are billed twice.
const readOurs = `
	drop table if exists ours, refs, pairs;
	create temporary table ours as
	select row_number() over () as nr, a.message_seq as seq, a.attempt, m.id,
	  a.claimed_at as at, a.outcome, a.segments::integer as segments, ` + billedSegments + ` as billed,
	  ` + billedMicros + ` as micros, a.currency, m.number_hmac as number,
	  string_to_array(nullif(a.provider_reference, ''), ' ') as refs
	from facts.stored_attempts a join facts.stored_messages m on m.seq = a.message_seq
	where a.channel = @channel and a.claimed_at >= @begin and a.claimed_at < @end
	  and a.message_seq < @next and not ` + isUnsent + `;
	create temporary table refs as
	select nr, ref as reference, greatest(segments / cardinality(refs), 1) as most
	from ours, unnest(refs) ref;
	insert into refs
	select o.nr, r.reference, greatest(o.segments, 1)
	from ours o cross join lateral (select reference from facts.receipts
	  where message_seq = o.seq and attempt = o.attempt and channel = @channel offset 0) r
	where o.outcome is distinct from 'accepted'
	  and position(' ' in r.reference) = 0 and r.reference <> all (coalesce(o.refs, '{}'));
	analyze ours; analyze refs;
	create temporary table pairs (nr bigint, line integer, sure boolean);`

// pairReferences pairs lines with the attempts that have their reference. When a provider has used
// an id again, the line belongs to the attempt that is nearest in time. Of several attempts under
// one key the latest is billed. A line below 0 is a credit: it takes back what was billed, perhaps
// in an earlier file, so it belongs to no attempt.
const pairReferences = `
	insert into pairs
	select nr, line, true from (
	  select *, row_number() over w as n, sum(segments) over w as upto
	  from (
	    select distinct on (t.line) t.line, t.reference, greatest(t.segments, 1) as segments, o.nr,
	      r.most
	    from theirs t join refs r on r.reference = t.reference join ours o on o.nr = r.nr
	    where coalesce(t.nanos, 0) >= 0
	    order by t.line, o.segments > 0 desc, abs(extract(epoch from t.at - o.at)), o.nr
	  ) nearest
	  window w as (partition by nr, reference order by line rows unbounded preceding)
	) counted
	where n = 1 or upto <= most;
	analyze pairs`

// MatchReferences reads the attempts of the period, and pairs them with lines of the same
// reference. Each call starts anew.
func (c *Comparison) MatchReferences(ctx context.Context, s *Reconciliations, p Period) error {
	c.Period = p
	_, high, err := s.seek(ctx, p.To.Add(clocksApart))
	if err != nil {
		return err
	}
	return c.run(ctx, readOurs+pairReferences, (DayOf(high) + 1).first())
}

// run runs statements with the parameters of the period that they name. It uses the simple
// protocol: only that takes several statements at once, and parameters in a statement that creates
// a table.
func (c *Comparison) run(ctx context.Context, sql string, next int64) error {
	_, err := c.conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol, pgx.NamedArgs{
		"channel": c.Channel, "begin": c.From.Add(-clocksApart), "end": c.To.Add(clocksApart),
		"next": next, "from": c.From, "to": c.To,
	})
	return wrap("reconcile", err)
}

// Unpaired is a line without an attempt, or an attempt without a line.
type Unpaired struct {
	Line     bool
	ID       int64
	Number   int64
	At       time.Time
	Segments int
}

// Unpaired reads what may be paired by number, time and segments, ordered by number and time: lines
// with number and time, and attempts that were taken or may have been.
func (c *Comparison) Unpaired(ctx context.Context) iter.Seq2[Unpaired, error] {
	return func(yield func(Unpaired, error) bool) {
		r, err := c.conn.Query(ctx, `
			select true, t.line::bigint, number, t.at, coalesce(t.segments, 0)
			from theirs t, unnest(t.numbers) number
			where t.at is not null and coalesce(t.nanos, 0) >= 0
			  and not exists (select from pairs p where p.line = t.line)
			union all
			select false, o.nr, o.number, o.at, o.segments from ours o
			where o.segments > 0 and o.number is not null
			  and (o.outcome is null or o.outcome in ('accepted', 'unknown'))
			  and not exists (select from pairs p where p.nr = o.nr)
			order by 3, 4, 1, 2`)
		if err != nil {
			yield(Unpaired{}, wrap("reconcile", err))
			return
		}
		defer r.Close()
		for r.Next() {
			var u Unpaired
			err := r.Scan(&u.Line, &u.ID, &u.Number, &u.At, &u.Segments)
			if !yield(u, err) || err != nil {
				return
			}
		}
		if r.Err() != nil {
			yield(Unpaired{}, wrap("reconcile", r.Err()))
		}
	}
}

// LinePair is an attempt and a line that belong together, by Unpaired.ID. Sure says that the line
// can belong to no other unpaired attempt.
type LinePair struct {
	Attempt, Line int64
	Sure          bool
}

// Match stores the pairs that were found by number, and adds up the lines of each attempt.
func (c *Comparison) Match(ctx context.Context, found []LinePair) error {
	_, err := c.conn.CopyFrom(ctx, pgx.Identifier{"pairs"}, []string{"nr", "line", "sure"},
		pgx.CopyFromSlice(len(found), func(i int) ([]any, error) {
			return []any{found[i].Attempt, found[i].Line, found[i].Sure}, nil
		}))
	if err != nil {
		return wrap("reconcile", err)
	}
	return c.run(ctx, addUp, 0)
}

// addUp makes one row of the lines of each attempt, and finds the differences. Segments and price
// are null unless all lines have them. missing are attempts without a line that are certainly
// billed, extra are lines without an attempt.
const addUp = `
	drop table if exists compared, missing, extra, found;
	analyze pairs;
	create temporary table compared as
	select p.nr, count(*) as lines, bool_and(p.sure) as sure, bool_or(t.taken) as taken,
	  case when count(t.segments) = count(*) then sum(t.segments) filter (where t.taken) end as segments,
	  case when count(t.nanos) = count(*) then sum(t.nanos) end as nanos,
	  min(t.currency) as currency, min(t.line) as line, min(t.reference) as reference
	from pairs p join theirs t on t.line = p.line group by p.nr;
	analyze compared;
	create temporary table missing as
	select o.* from ours o where o.billed > 0 and o.at >= @from and o.at < @to
	  and not exists (select from compared c where c.nr = o.nr);
	create temporary table extra as
	select t.*, coalesce(t.nanos, 0) >= 0 and n.reference is not null as again
	from theirs t left join (select distinct reference from refs) n on n.reference = t.reference
	where t.taken and not exists (select from pairs p where p.line = t.line);
	create temporary table found (kind text, nr bigint, line integer, reference text, at timestamptz,
	  ours text, theirs text, currency text);
	insert into found
	select 'ours_only', nr, null, null, at, trim_scale(micros / 1000000.0)::text, '',
	  currency from missing;
	insert into found
	select case when again then 'duplicate' else 'theirs_only' end, null, line, reference, at, '',
	  coalesce(trim_scale(nanos / 1000000000.0)::text, ''), coalesce(currency, '') from extra;
	insert into found
	select d.kind, o.nr, c.line, c.reference, o.at, d.ours, d.theirs, d.currency
	from compared c join ours o on o.nr = c.nr
	cross join lateral (values
	  ('outcome', coalesce(o.outcome, 'pending'), case when c.taken then 'taken' else 'not_taken' end,
	    '', o.outcome is distinct from case when c.taken then 'accepted' else o.outcome end
	      or not c.taken and o.billed > 0),
	  ('segments', o.billed::text, c.segments::text, '',
	    c.taken and o.outcome = 'accepted' and c.segments <> o.billed),
	  ('currency', o.currency, c.currency, '', c.nanos is not null and o.billed > 0
	    and o.outcome = 'accepted' and c.currency <> o.currency),
	  ('price', trim_scale(o.micros / 1000000.0)::text,
	    trim_scale(c.nanos / 1000000000.0)::text, o.currency,
	    o.outcome = 'accepted' and c.currency = o.currency and round(c.nanos / 1000.0) <> o.micros)
	) d(kind, ours, theirs, currency, differs)
	where d.differs`
