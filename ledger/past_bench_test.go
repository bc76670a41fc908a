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

func newPastRig(b *testing.B, url string) pastRig {
	b.Helper()
	l := connect(b, ledger.Config{URL: url, MaxConns: 1})
	apply(b, l, ledger.ChannelSpec{Name: "a"})
	db, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(b.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
	queue(b, db, "bulk", "t", 500)
	return pastRig{url, l}
}

// round runs each operation once, and returns how long it took.
func (r *pastRig) round(b *testing.B, prefix string) map[string]time.Duration {
	b.Helper()
	if _, err := r.l.Instances.Beat(b.Context(), time.Time{}); err != nil {
		b.Fatal(err)
	}
	took := map[string]time.Duration{}
	measure := func(operation string, work func()) {
		began := time.Now()
		work()
		took[operation] = time.Since(began)
	}
	var settlements []ledger.Settlement
	measure("claim", func() {
		settlements = accepted(claimAll(b, r.l, batch(prefix, 500), "a").Messages)
	})
	receipts := make([]ledger.Receipt, len(settlements))
	for i := range settlements {
		settlements[i].Await = 72 * time.Hour
		receipts[i] = receipt(settlements[i].Reference, provider.Delivered)
	}
	measure("settle", func() { settleAll(b, r.l, settlements) })
	measure("receive", func() {
		if got := receive(b, r.l, receipts...); got.Matched != 500 {
			b.Fatalf("%+v", got)
		}
	})
	measure("due", func() {
		if _, picked := pick(b, r.l, 500, false); len(picked) != 500 {
			b.Fatalf("%d are due", len(picked))
		}
	})
	r.leaveOpen(b, "left-"+prefix)
	measure("recover", func() { r.recoverAll(b) })
	return took
}

// leaveOpen claims 500 messages from an instance that leaves without an outcome.
func (r *pastRig) leaveOpen(b *testing.B, prefix string) {
	b.Helper()
	l, err := ledger.Connect(b.Context(), ledger.Config{URL: asApp(r.url), MaxConns: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.Instances.Register(b.Context()); err != nil {
		b.Fatal(err)
	}
	claimAll(b, l, batch(prefix, 500), "a")
	if err := l.Instances.Leave(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// recoverAll settles the attempts of an instance that has left.
func (r *pastRig) recoverAll(b *testing.B) {
	b.Helper()
	open, err := r.l.Settlements.Abandoned(b.Context(), time.Minute, 0, 1000)
	if err != nil || len(open) != 500 {
		b.Fatalf("%d are open: %v", len(open), err)
	}
	settlements := make([]ledger.Settlement, len(open))
	for i := range open {
		settlements[i] = ledger.Settlement{
			Seq: open[i].Message.Seq, ID: open[i].Message.ID, Attempt: 1,
			Outcome: provider.Unknown, State: ledger.Unknown,
		}
	}
	settleAll(b, r.l, settlements)
	if err := r.l.Instances.Forget(b.Context(), time.Minute); err != nil {
		b.Fatal(err)
	}
}
