package steer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/provider"
)

// rig is a database with a routing, and instances that steer it.
type rig struct {
	t      *testing.T
	url    string
	ledger *ledger.Ledger
	db     *pgx.Conn
	sent   int
	log    bytes.Buffer // of all instances; read while none is running
	out    io.Writer    // to log
}

const document = `# who pays for c: finance
channels:
  a: {provider: sandbox}
  b: {provider: sandbox}
  c: {provider: sandbox}
routes:
  - name: default
    weights: {a: 25, b: 15, c: 60} # agreed in May
    health: {errors: 5, window: 1m, step: 25, floor: 10, interval: 1m, quiet: 2m}
  - name: second
    match: {tenants: [other]}
    weights: {a: 1, b: 1}
    health: {errors: 5, window: 1m, step: 50, floor: 10, interval: 1m, quiet: 2m}
`

// newRig applies the document as version 1.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := emptyRig(t)
	r.apply(document)
	return r
}

func emptyRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t}
	r.ledger, r.url = lent.Ledger(t, ledger.Config{Region: "test", Host: "test"})
	r.out = zerolog.SyncWriter(&r.log)
	var err error
	if err := r.ledger.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.db, err = pgx.Connect(t.Context(), r.url); err != nil {
		t.Fatal(err)
	}
	// t.Context has ended when cleanups run
	t.Cleanup(func() { _ = r.db.Close(context.Background()) })
	return r
}

// logged checks that the latest line of the log has a level and a text.
func (r *rig) logged(level, text string) {
	r.t.Helper()
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"level":"`+level+`"`) ||
		!strings.Contains(last, text) {
		r.t.Errorf("%s\nis not at level %s or lacks %s", last, level, text)
	}
}

// steerer returns an instance, or the same one after a restart.
func (r *rig) steerer() *Steerer {
	r.t.Helper()
	return r.withSendTimeout(10 * time.Second)
}

// withSendTimeout returns an instance with this send timeout.
func (r *rig) withSendTimeout(sendTimeout time.Duration) *Steerer {
	r.t.Helper()
	s, err := New(Config{
		Ledger: r.ledger, NewRouting: asRouting, Every: time.Millisecond, SendTimeout: sendTimeout,
		Awaits:   func(c *config.Channel) time.Duration { return c.Receipts.Wait() },
		Registry: prometheus.NewRegistry(), Log: zerolog.New(r.out), Arrivals: &Arrivals{},
		Trouble: func(where string, err error) { r.t.Errorf("%s: %v", where, err) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func asRouting(
	document *config.Document, _ *config.Routing, author, reason string, expect *int64,
) ledger.NewRouting {
	doc := document.Routing
	n := ledger.NewRouting{
		Expect: expect, Author: author, Reason: reason,
		Document: string(document.Text),
	}
	n.Effects = func(current ledger.RoutingVersion) []byte {
		_, before, err := config.ParseVersion(1, current.Document, current.Effects)
		if err != nil {
			return nil
		}
		return config.KeepEffects(before, doc).Encode()
	}
	for _, c := range doc.ChannelNames() {
		n.Channels = append(n.Channels, ledger.ChannelSpec{Name: c})
	}
	for i := range doc.Routes {
		n.Routes = append(n.Routes, ledger.RouteSpec{
			Name:    doc.Routes[i].Name,
			Members: doc.Routes[i].Channels,
		})
	}
	return n
}

// apply applies a document.
func (r *rig) apply(text string) {
	r.t.Helper()
	doc, err := config.ParseDocument("test", []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.ledger.Routing.Apply(r.t.Context(), asRouting(doc, nil, "test", "test",
		nil)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) round(s *Steerer) {
	r.t.Helper()
	if err := s.round(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// start begins a ramp of route default.
func (r *rig) start(ramp ledger.Ramp) ledger.Ramp {
	r.t.Helper()
	ramp.Route, ramp.Author, ramp.Reason = "default", "alice", "cheaper"
	if ramp.From == nil {
		ramp.From = m("a", "25", "b", "15", "c", "60")
	}
	started, err := r.ledger.Ramps.Start(r.t.Context(), ramp, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return started
}

// ramp returns the state of a ramp.
func (r *rig) ramp(id int64) ledger.Ramp {
	r.t.Helper()
	ramps, err := r.ledger.Ramps.List(r.t.Context(), true)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, ramp := range ramps {
		if ramp.ID == id {
			return ramp
		}
	}
	r.t.Fatalf("there is no ramp %d", id)
	return ledger.Ramp{}
}

// current returns the current version and its document.
func (r *rig) current() (ledger.RoutingVersion, *config.Routing) {
	r.t.Helper()
	v, err := r.ledger.Routing.Current(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	_, doc, err := config.ParseVersion(1, v.Document, v.Effects)
	if err != nil {
		r.t.Fatal(err)
	}
	return v, doc
}

// exec runs a statement that makes time pass in the database.
func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.db.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// age makes everything in the database older.
func (r *rig) age(by time.Duration) {
	r.t.Helper()
	r.exec(`update dispatcher.routing_versions set created_at = created_at - $1::interval`, by)
	r.exec(`update dispatcher.messages set received_at = received_at - $1::interval`, by)
	r.exec(`update dispatcher.attempts set claimed_at = claimed_at - $1::interval, settled_at = `+
		`settled_at - $1::interval, receipt_at = receipt_at - $1::interval, delivered_at = `+
		`delivered_at - $1::interval`, by)
	r.exec(`update dispatcher.ramps set changed_at = changed_at - $1::interval, next_at = `+
		`next_at - $1::interval`, by)
}

// carry stores n messages of route default, sent over a channel with the same outcome.
func (r *rig) carry(channel string, outcome provider.Outcome, n int) {
	r.t.Helper()
	messages := make([]ledger.Message, n)
	for i := range messages {
		r.sent++
		id := fmt.Sprintf("m-%06d", r.sent)
		messages[i] = ledger.Message{
			ID: id, Lane: "otp", State: ledger.Sending, Digest: 1, Envelope: []byte(`{"id":"` + id +
				`"}`),
			Origin:    ledger.Origin{Topic: "sms.otp", Offset: int64(r.sent)},
			ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
			Plan: ledger.Plan{
				Route: "default", Version: 1, Draw: 1, Size: 100, KeyID: "k",
				FirstChoice: channel, Segments: 1, Alphabet: "gsm7",
			},
		}
	}
	tx, err := r.ledger.Claims.Lock(r.t.Context(), ledger.Claim{
		Messages: messages,
		Channels: []string{channel},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
	c := &seen.Channels[0]
	c.Gate.Roll(seen.Now, time.UTC)
	for i := range seen.Messages {
		c.Gate.Active.Count++
		c.LastAssigned = seen.Now
		d.Each[i] = ledger.Decision{
			State: ledger.Sending, Plan: seen.Messages[i].Plan,
			Attempt: ledger.Attempt{
				Number: 1, Channel: channel, Reason: ledger.ByFirstChoice, Segments: 1,
				Currency: "GBP",
			},
		}
	}
	if err := tx.Commit(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
	claimed := seen.Messages
	settlements := make([]ledger.Settlement, len(claimed))
	for i := range claimed {
		settlements[i] = ledger.Settlement{
			Seq: claimed[i].Seq, ID: claimed[i].ID, Attempt: 1,
			Outcome: outcome, State: ledger.Failed, Reason: "test",
		}
		if outcome == provider.Accepted {
			settlements[i].State, settlements[i].Segments, settlements[i].Reference = ledger.Accepted, 1,
				"ref"
		}
	}
	if err := r.ledger.Settlements.Settle(r.t.Context(), settlements); err != nil {
		r.t.Fatal(err)
	}
}
