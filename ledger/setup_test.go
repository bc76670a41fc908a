package ledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/ledger/pgserver"
	"dispatcher/provider"
)

func TestMain(m *testing.M) {
	// A flag of the command line wins over this.
	if err := flag.Set("rapid.checks", tier.Size("12", "100")); err != nil {
		panic(err)
	}
	tier.Parallel(6)
	ledgertest.Main(m, closeRigs)
}

// limit is a limit of a test's routing, in messages.
func limit(window admission.Window, most int64) admission.Limit {
	return admission.Limit{Window: window, Max: most}
}

// open returns a registered ledger over an empty database with channels a, b and c.
func open(t testing.TB, specs ...ledger.ChannelSpec) *ledger.Ledger {
	t.Helper()
	l := lend(t).l
	if specs == nil {
		specs = []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	}
	apply(t, l, specs...)
	return l
}

// asApp is the address for a login with the rights that "migrate --roles" grants to the dispatcher.
// All these tests use it, except on servers of their own, which have no roles.
func asApp(url string) string {
	if strings.Contains(url, "role%3D") || strings.Contains(url, "/"+pgserver.Database+"?") {
		return url
	}
	return ledgertest.As(migrations.RoleApp, url)
}

// connect opens and registers one more instance over the same database. Over the database of a rig
// it is one that the rig keeps for the next test, unless more than the address is set.
func connect(t testing.TB, c ledger.Config) *ledger.Ledger {
	t.Helper()
	if c == (ledger.Config{URL: c.URL}) {
		if l := oneMore(t, c.URL); l != nil {
			return l
		}
	}
	c.Region, c.Host, c.URL = "test", t.Name(), asApp(c.URL)
	l, err := ledger.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Close would wait for ever for a claim that neither commits nor rolls back.
		if allGivenBack(l) {
			l.Close()
		} else {
			t.Errorf("%d claims were neither committed nor rolled back", l.Held())
		}
	})
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// allGivenBack waits until claims and settlements hold no connection.
func allGivenBack(l *ledger.Ledger) bool {
	for end := time.Now().Add(tier.LongestWait); l.Held() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func apply(t testing.TB, l *ledger.Ledger, specs ...ledger.ChannelSpec) int64 {
	t.Helper()
	version, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: "routes: []", Channels: specs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// raw is a connection outside the ledger.
func raw(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the test may have cut it
	})
	return conn
}

// scalar reads one value.
func scalar[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// waiting starts work that waits for a lock, and returns when it waits.
func waiting(t *testing.T, db *pgx.Conn, work func() error) (done chan error) {
	t.Helper()
	done = make(chan error, 1)
	before := waiters(t, db)
	go func() { done <- work() }()
	for waiters(t, db) <= before && t.Context().Err() == nil {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	return done
}

// waiters counts the sessions that wait for a lock.
func waiters(t *testing.T, db *pgx.Conn) int {
	t.Helper()
	return scalar[int](t, db, `select count(*) from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock'`)
}

// store inserts messages with their ids and payloads, on the current day. rows is a query whose
// columns are listed in columns. id must be among them, and those columns of the payload that are
// not to be empty.
func store(t testing.TB, db *pgx.Conn, columns, rows string, args ...any) {
	t.Helper()
	envelope, digest := "''", "0"
	of := slices.DeleteFunc(strings.Split(columns, ", "), func(name string) bool {
		switch name {
		case "envelope":
			envelope = name
		case "digest":
			digest = name
		default:
			return false
		}
		return true
	})
	kept := strings.Join(of, ", ")
	execute(t, db, `
		with given (`+columns+`) as (`+rows+`), numbered as materialized (
		  select dispatcher.first_of(dispatcher.day_at(now()))
		    + nextval('dispatcher.message_numbers') as seq, given.* from given
		), ids as (
		  insert into dispatcher.ids_0 (id, seq) select id, seq from numbered
		), texts as (
		  insert into dispatcher.payloads (seq, digest, envelope)
		  select seq, `+digest+`, `+envelope+` from numbered
		)
		insert into dispatcher.messages (seq, `+kept+`) select seq, `+kept+` from numbered`,
		args...)
}

// message is a new message that needs a channel.
func message(id string) ledger.Message {
	return ledger.Message{
		ID: id, Lane: "otp", Tenant: "shop", State: ledger.Sending, Digest: int64(len(id)),
		Origin:    ledger.Origin{Topic: "sms.otp", Partition: 3, Offset: 77},
		Envelope:  []byte(`{"id":"` + id + `","to":"+447700900123","text":"Your code is 123456"}`),
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
		Plan: ledger.Plan{
			Route: "default", Version: 1, Draw: 17, Size: 100, KeyID: "k1", FirstChoice: "a",
			Segments: 1, Alphabet: "gsm7",
		},
	}
}

// batch is n new messages with distinct ids.
func batch(prefix string, n int) []ledger.Message {
	messages := make([]ledger.Message, n)
	for i := range messages {
		messages[i] = message(fmt.Sprintf("%s-%05d", prefix, i))
	}
	return messages
}

// give sends every new or due message to the first channel that admits it, and makes it wait a
// minute when none does.
func give(seen *ledger.Seen) (ledger.Decisions, error) {
	d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
	for i := range seen.Channels {
		seen.Channels[i].Gate.Roll(seen.Now, time.UTC)
	}
	for i := range seen.Messages {
		if seen.Intakes[i] == ledger.Fresh || seen.Intakes[i] == ledger.Due {
			d.Each[i] = giveOne(seen, &seen.Messages[i])
		}
	}
	return d, nil
}

// admit takes an active slot and a slot of every counter, or nothing at all.
func admit(seen *ledger.Seen, g *admission.Gate, segments int) bool {
	m, n := momentOf(seen), &admission.Need{Segments: segments}
	accounts, rate := make([]admission.Account, len(g.Counters)), g.Ease.RateAt(m.Now)
	for i := range g.Counters {
		accounts[i] = admission.Account{Counter: &g.Counters[i], Rate: rate}
	}
	r, excluded := admission.Fit(m, accounts, n)
	if !g.Active.Free() || excluded != nil {
		return false
	}
	admission.Take(m, accounts, n, r)
	g.Active.Count++
	return true
}

func giveOne(seen *ledger.Seen, m *ledger.Message) ledger.Decision {
	for i := range seen.Channels {
		c := &seen.Channels[i]
		if !admit(seen, &c.Gate, m.Plan.Segments) {
			continue
		}
		c.LastAssigned = seen.Now
		return ledger.Decision{State: ledger.Sending, Plan: m.Plan, Attempt: ledger.Attempt{
			Number: m.Attempts + 1, Channel: c.Name, Reason: ledger.ByFirstChoice,
			Segments: m.Plan.Segments, PriceMicros: 28000, Currency: "GBP",
		}}
	}
	return ledger.Decision{
		State: ledger.Waiting, Reason: "no_slot",
		NextAt: seen.Now.Add(time.Minute), Plan: m.Plan, Seen: []byte(`{"a":"no_slot"}`),
	}
}

// decide decides about what a claim shows.
type decide func(*ledger.Seen) (ledger.Decisions, error)

// runClaim locks, decides and commits. When the instance has been silent for too long it sends a
// heartbeat and tries again: instances of tests send none by themselves, and a test may take long
// on a busy machine.
func runClaim(ctx context.Context, l *ledger.Ledger, want ledger.Claim, with decide) error {
	tx, err := l.Claims.Lock(ctx, want)
	if errors.Is(err, ledger.ErrSilent) {
		if _, err = l.Instances.Beat(ctx, time.Time{}); err == nil {
			tx, err = l.Claims.Lock(ctx, want)
		}
	}
	if err != nil {
		return err
	}
	defer tx.Rollback()
	d, err := with(tx.Seen())
	if err != nil {
		return err
	}
	return tx.Commit(ctx, d)
}

// claimAll claims the messages on the channels with give and returns what was shown.
func claimAll(
	t testing.TB, l *ledger.Ledger, messages []ledger.Message, channels ...string,
) ledger.Seen {
	t.Helper()
	var shown ledger.Seen
	err := runClaim(t.Context(), l, ledger.Claim{Messages: messages, Channels: channels},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d, err := give(seen)
			shown = *seen
			return d, err
		})
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// accepted settles the first attempt of each message as accepted.
func accepted(messages []ledger.Message) []ledger.Settlement {
	settlements := make([]ledger.Settlement, len(messages))
	for i := range messages {
		m := &messages[i]
		settlements[i] = ledger.Settlement{
			Seq: m.Seq, ID: m.ID, Attempt: m.Attempts + 1, Outcome: provider.Accepted,
			Reference: "ref-" + m.ID,
			Segments:  1, PriceMicros: 28000, State: ledger.Accepted,
			Notice: &ledger.Notice{
				Kind: ledger.Status, Key: m.ID,
				Value: []byte(`{"state":"accepted"}`),
			},
		}
	}
	return settlements
}

func settleAll(t testing.TB, l *ledger.Ledger, settlements []ledger.Settlement) {
	t.Helper()
	if err := l.Settlements.Settle(t.Context(), settlements); err != nil {
		t.Fatal(err)
	}
}

// momentOf is the beginning of the second in which a claim was made. A paced limit has free release
// times then; at the end of a second it has none.
func momentOf(seen *ledger.Seen) *admission.Moment {
	now := seen.Now.Truncate(time.Second)
	return &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
}
