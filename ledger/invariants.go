package ledger

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed invariants/*.sql
var invariantFiles embed.FS

// Invariant is something that is true at every moment, as an SQL statement that returns a sentence
// for each violation. The statement locks and writes nothing.
type Invariant struct {
	// Name is the name of its file, without .sql.
	Name string
	// Guarantee is the guarantee of DESIGN.md that the invariant is part of, in the same words, and
	// Number its number.
	Guarantee string
	Number    int
	// Sentence says what must be true.
	Sentence string
	sql      string
}

// Invariants are all invariants, ordered by guarantee and name.
var Invariants = readInvariants()

func readInvariants() (all []Invariant) {
	files, err := fs.Glob(invariantFiles, "invariants/*.sql")
	if err != nil {
		panic("ledger: " + err.Error())
	}
	for _, file := range files {
		text, err := invariantFiles.ReadFile(file)
		if err != nil {
			panic("ledger: " + err.Error())
		}
		all = append(all, parseInvariant(strings.TrimSuffix(path.Base(file), ".sql"), string(text)))
	}
	slices.SortStableFunc(all, func(a, b Invariant) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// parseInvariant reads the guarantee from the first line of a file and the sentence from the
// second.
func parseInvariant(name, text string) Invariant {
	lines := strings.SplitN(text, "\n", 3)
	number, guarantee, ok := strings.Cut(strings.TrimPrefix(lines[0], "-- guarantee "), ": ")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || len(lines) < 3 {
		panic("ledger: " + name + ".sql does not begin with its guarantee and its sentence")
	}
	return Invariant{
		Name: name, Guarantee: guarantee, Number: n,
		Sentence: strings.TrimPrefix(lines[1], "-- "), sql: text,
	}
}

// Daily reports whether the statement checks the messages of some period. Otherwise it checks the
// present state.
func (i *Invariant) Daily() bool {
	return strings.Contains(i.sql, ":first") || strings.Contains(i.sql, ":'since'")
}

// InvariantScope is what a statement checks.
type InvariantScope struct {
	// First and Next bound the numbers of messages, Since and Until the times of windows.
	First, Next  int64
	Since, Until time.Time
	// Grace is how long recovery may take: by then the attempts of a dead instance are closed.
	Grace time.Duration
}

// ScopeOf is the scope of all days from from to to.
func ScopeOf(from, to Day, grace time.Duration) InvariantScope {
	return InvariantScope{
		First: from.first(), Next: (to + 1).first(), Since: from.Begin(), Until: (to + 1).Begin(),
		Grace: grace,
	}
}

// SQL is the statement for a scope. It can be run in psql; so can the files themselves, with the
// variables first, next, since, until and grace.
func (i *Invariant) SQL(s *InvariantScope) string {
	at := func(t time.Time) string { return "'" + t.UTC().Format("2006-01-02 15:04:05.999999Z07:00") + "'" }
	return strings.NewReplacer(
		":first", strconv.FormatInt(s.First, 10), ":next", strconv.FormatInt(s.Next, 10),
		":'since'", at(s.Since), ":'until'", at(s.Until),
		":'grace'", fmt.Sprintf("'%d seconds'", int64(s.Grace.Seconds())),
	).Replace(i.sql)
}

// Audits checks the invariants, and lists and records what operators did.
type Audits struct{ *db }

// Days returns the first and the last day that the ledger has.
func (s *Audits) Days(ctx context.Context) (first, last Day, err error) {
	err = s.hot.QueryRow(ctx, `
		select coalesce(min(day), 0), coalesce(max(day), 0) from dispatcher.days where not dropping`).
		Scan(&first, &last)
	return first, last, wrap("look for the days", err)
}

// recentMessages and recentTime bound what a check in the background reads. It takes a second or
// two, whatever the traffic.
const (
	recentMessages = 100_000
	recentTime     = 30 * time.Minute
)

// selectRecent finds the first of the last $2 messages after number $1.
const selectRecent = `
	select coalesce(max(seq), $1 + 1), coalesce(max(received_at), now()) from (
	  (select seq, received_at from dispatcher.messages where seq > $1 order by seq limit 1)
	  union all
	  (select seq, received_at from dispatcher.messages where seq > $1
	    order by seq desc offset $2 limit 1)) n`

// Recent is the scope of a check in the background: the last messages, and the windows since the
// first of them. Attempts without outcome are checked over two days, because that costs little and
// the oldest ones matter.
func (s *Audits) Recent(
	ctx context.Context, grace time.Duration,
) (scope func(*Invariant) InvariantScope, err error) {
	now, err := s.clock(ctx)
	if err != nil {
		return nil, wrap("check invariants", err)
	}
	low, _, err := s.seek(ctx, now.Add(-recentTime))
	if err != nil {
		return nil, err
	}
	days := ScopeOf(DayAt(now)-1, DayAt(now)+1, grace)
	recent := days
	err = s.reports.QueryRow(ctx, selectRecent, low, recentMessages).
		Scan(&recent.First, &recent.Since)
	if err != nil {
		return nil, wrap("check invariants", err)
	}
	return func(i *Invariant) InvariantScope {
		if i.Name == "lost_attempts_are_closed" {
			return days
		}
		return recent
	}, nil
}

func (s *Audits) clock(ctx context.Context) (now time.Time, err error) {
	err = s.reports.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, err
}

// IsFirst reports whether this instance has the lowest number of those that have sent a heartbeat
// within deadAfter. One instance is enough to check what all share.
func (s *Audits) IsFirst(ctx context.Context, deadAfter time.Duration) (first bool, err error) {
	err = s.reports.QueryRow(ctx, `
		select coalesce(min(id) = $2, false) from dispatcher.instances
		where left_at is null and last_seen > clock_timestamp() - $1::interval`,
		deadAfter, s.instance.Load()).Scan(&first)
	return first, wrap("look for the first instance", err)
}

// auditSettings are the settings of the session of a check. Its statements read whole partitions,
// and use one processor at most.
const auditSettings = `
	set application_name = 'dispatcher invariants'; set enable_seqscan = on; set enable_hashjoin = on;
	set enable_mergejoin = on; set plan_cache_mode = force_custom_plan; set jit = off;
	set enable_partitionwise_join = on; set enable_partitionwise_aggregate = on;
	set max_parallel_workers_per_gather = 0; set work_mem = '64MB';
	set default_transaction_read_only = on`

// Auditor is a connection on which invariants are checked.
type Auditor struct{ conn *pgx.Conn }

// Open connects. Each statement may take as long as timeout; 0 means no limit.
func (s *Audits) Open(ctx context.Context, timeout time.Duration) (*Auditor, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, wrap("check invariants", err)
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("%s; set statement_timeout = %d", auditSettings,
		timeout.Milliseconds()))
	if err != nil {
		closeConn(conn)
		return nil, wrap("check invariants", err)
	}
	return &Auditor{conn}, nil
}

// Close ends the connection.
func (a *Auditor) Close() { closeConn(a.conn) }

// Check runs the statement of an invariant, and calls each with the sentence of each violation. The
// statement reads the ledger in one snapshot.
func (a *Auditor) Check(
	ctx context.Context, i *Invariant, s *InvariantScope, each func(detail string),
) error {
	rows, err := a.conn.Query(ctx, i.SQL(s), pgx.QueryExecModeExec)
	if err != nil {
		return wrap("check "+i.Name, err)
	}
	var detail string
	_, err = pgx.ForEachRow(rows, []any{&detail}, func() error {
		each(detail)
		return nil
	})
	return wrap("check "+i.Name, err)
}
