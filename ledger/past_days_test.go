package ledger_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/ledger/past"
	"dispatcher/ledger/pgserver"
	"dispatcher/provider"
)

// operations are what BenchmarkPastDays measures, 500 messages each.
var operations = []string{"claim", "settle", "receive", "due", "recover"}

// BenchmarkPastDays compares operations over a ledger that holds the messages of 60 days with the
// same over an empty one, on one durable server. The two alternate, so that a change in the
// machine's speed affects them alike, and medians are compared: ratio/claim is the time of a claim
// with history divided by the time without. LONG_TESTS=1: 30 million messages, 26 GB.
func BenchmarkPastDays(b *testing.B) {
	s, err := pgserver.Start(b.Context(), pgserver.Config{
		Dir: filepath.Join(b.TempDir(), "pg"), Settings: map[string]string{
			"max_wal_size": "8GB",
			// As much as the rows of the rounds in both databases need: recovery reads those of the last
			// minutes, and with less it would measure how they replace one another.
			"shared_buffers": "1GB",
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(b.Context()) })
	server := raw(b, s.URL())
	names := []string{"empty_days", "full_days"}
	for _, name := range names {
		execute(b, server, "create database "+name)
		url := s.URLOf(name)
		if name == "full_days" {
			err = past.Fill(b.Context(), url, tier.Size(120_000, 30_000_000), func(step string) {
				b.Log(step)
			})
		} else {
			err = ledger.Migrate(b.Context(), url)
		}
		if err == nil {
			_, err = migrations.Roles(b.Context(), url, 24*time.Hour)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	took := make([]map[string][]time.Duration, len(names))
	var rigs []pastRig
	for i, name := range names {
		rigs = append(rigs, newPastRig(b, s.URLOf(name)))
		took[i] = map[string][]time.Duration{}
	}
	for n := 0; b.Loop(); n++ {
		for i := range rigs {
			for operation, d := range rigs[i].round(b, fmt.Sprintf("b%06d", n*7919%1000000)) {
				took[i][operation] = append(took[i][operation], d)
			}
		}
	}
	for _, operation := range operations {
		empty, full := took[0][operation], took[1][operation]
		slices.Sort(empty)
		slices.Sort(full)
		middle := len(full) / 2
		b.ReportMetric(full[middle].Seconds()*1000, "ms/"+operation)
		b.ReportMetric(float64(full[middle])/float64(empty[middle]), "ratio/"+operation)
	}
}

// pastRig is a ledger with 500 messages that are due.
type pastRig struct {
	url string
	l   *ledger.Ledger
}

func newPastRig(t testing.TB, url string) pastRig {
	t.Helper()
	l := connect(t, ledger.Config{URL: url, MaxConns: 1})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
	queue(t, db, "bulk", "t", 500)
	return pastRig{url, l}
}

// TestNoRowOfAPastDayIsRead by any of the operations, in functions and triggers too. Recovery asks
// each day for attempts without outcome: it reads some pages of an index, however many rows the day
// has.
func TestNoRowOfAPastDayIsRead(t *testing.T) {
	t.Parallel()
	const days, messages = 16, 1000
	url := ledgertest.Fresh(t)
	db := raw(t, url)
	today := scalar[string](t, db, `select to_char(now() at time zone 'UTC', 'YYYYMMDD')`)
	for back := days; back > 0; back-- {
		if err := past.FillDay(t.Context(), db, back, messages, back > 14); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, db, `vacuum (freeze, analyze)`)
	execute(t, db, `select dispatcher.summarise(inhrelid) from pg_inherits
		where inhparent = 'dispatcher.attempts_claimed_at'::regclass`)
	execute(t, db, `select pg_stat_force_next_flush()`)
	read := func() (rows, heap, index int) {
		t.Helper()
		if err := db.QueryRow(t.Context(), `
			select sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0)),
			  sum(io.heap_blks_read + io.heap_blks_hit),
			  sum(coalesce(io.idx_blks_read + io.idx_blks_hit, 0))
			from pg_stat_user_tables s join pg_statio_user_tables io using (relid)
			where s.relname ~ '_\d{8}$' and right(s.relname, 8) < $1`, today).
			Scan(&rows, &heap, &index); err != nil {
			t.Fatal(err)
		}
		return rows, heap, index
	}
	rows, heap, index := read()
	if rows < days*messages {
		t.Fatalf("%d rows were read while the days were filled: they are not counted", rows)
	}
	const recoveries = 4
	r := newPastRig(t, url)
	for n := range recoveries - 1 {
		r.round(t, fmt.Sprintf("r%d", n))
	}
	r.leaveOpen(t, "last")
	release(t, r.l)
	open := claimAll(t, r.l, batch("open", 1), "a").Messages[0]
	named := receipt("", provider.Delivered)
	named.Seq, named.Attempt = open.Seq, 1
	receive(t, r.l, named)
	r.recoverAll(t)
	r.l.Close()
	tier.Eventually(t, "the sessions report what they read, which they do at their end", func() bool {
		return scalar[int](t, db, `select count(*) from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend'
			  and pid <> pg_backend_pid()`) == 0
	})
	rowsAfter, heapAfter, indexAfter := read()
	if rowsAfter != rows || heapAfter != heap {
		t.Errorf("%d rows and %d pages of past days were read", rowsAfter-rows, heapAfter-heap)
	}
	if n := (indexAfter - index) / days / recoveries; n < 1 || n > 25 {
		t.Errorf("a recovery read %d pages of the indexes of a past day, want 1 to 25", n)
	}
}

// round runs each operation once, and returns how long it took.
func (r *pastRig) round(t testing.TB, prefix string) map[string]time.Duration {
	t.Helper()
	if _, err := r.l.Instances.Beat(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	measure := func(operation string, work func()) {
		began := time.Now()
		work()
		took[operation] = time.Since(began)
	}
	var settlements []ledger.Settlement
	measure("claim", func() {
		settlements = accepted(claimAll(t, r.l, batch(prefix, 500), "a").Messages)
	})
	receipts := make([]ledger.Receipt, len(settlements))
	for i := range settlements {
		settlements[i].Await = 72 * time.Hour
		receipts[i] = receipt(settlements[i].Reference, provider.Delivered)
	}
	measure("settle", func() { settleAll(t, r.l, settlements) })
	measure("receive", func() {
		if got := receive(t, r.l, receipts...); got.Matched != 500 {
			t.Fatalf("%+v", got)
		}
	})
	measure("due", func() {
		if _, picked := pick(t, r.l, 500, false); len(picked) != 500 {
			t.Fatalf("%d are due", len(picked))
		}
	})
	r.leaveOpen(t, "left-"+prefix)
	measure("recover", func() { r.recoverAll(t) })
	return took
}

// leaveOpen claims 500 messages from an instance that leaves without an outcome.
func (r *pastRig) leaveOpen(t testing.TB, prefix string) {
	t.Helper()
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: asApp(r.url), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	claimAll(t, l, batch(prefix, 500), "a")
	if err := l.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// recoverAll settles the attempts of an instance that has left.
func (r *pastRig) recoverAll(t testing.TB) {
	t.Helper()
	open, err := r.l.Settlements.Abandoned(t.Context(), time.Minute, 0, 1000)
	if err != nil || len(open) != 500 {
		t.Fatalf("%d are open: %v", len(open), err)
	}
	settlements := make([]ledger.Settlement, len(open))
	for i := range open {
		settlements[i] = ledger.Settlement{
			Seq: open[i].Message.Seq, ID: open[i].Message.ID, Attempt: 1,
			Outcome: provider.Unknown, State: ledger.Unknown,
		}
	}
	settleAll(t, r.l, settlements)
	if err := r.l.Instances.Forget(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}
