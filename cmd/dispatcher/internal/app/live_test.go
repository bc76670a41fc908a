package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

const oneChannel = `
channels: {a: {{ONE}}}
routes: [{name: default, weights: {a: 1}}]
`

// TestAChangedChannelFinishesWhatItHas moves a channel to another carrier while a full window of
// twenty submits waits for answers and many more are queued. The queued ones are sent over the new
// connection at once.
func TestAChangedChannelFinishesWhatItHas(t *testing.T) {
	t.Parallel()
	s := newStage(t, oneChannel)
	release := make(chan struct{})
	one := s.carrier("ONE")
	one.SetBehaviour(
		smpptest.Behaviour{
			Decide: func(smpptest.Submit) smpptest.Answer { return smpptest.Answer{Hold: release} },
		},
	)
	s.publish(200)
	s.until("a full window", func() bool { return one.Stats().Submits == 20 })
	s.apply(strings.Replace(oneChannel, "ONE", "TWO", 1))
	s.until("the new carrier at work", func() bool { return s.carrier("TWO").Stats().Accepted > 0 })
	if got := one.Stats().Unbinds; got != 0 {
		t.Error("the old connection closed before all answers came")
	}
	close(release)
	s.settled()
	s.until("the old connection to be closed", func() bool { return one.Stats().Unbinds == 1 })
	if got := one.Stats().Submits; got != 20 {
		t.Errorf("the old carrier got %d submits", got)
	}
	for i := range s.sent {
		for _, a := range s.record(fmt.Sprintf("m-%05d", i+1)).Attempts {
			if a.Outcome == "unknown" {
				t.Fatalf("attempt %d of message %d is unknown", a.Number, i+1)
			}
		}
	}
}

// TestChannelsComeAndGoUnderTraffic adds, changes and removes channels while messages are
// published.
func TestChannelsComeAndGoUnderTraffic(t *testing.T) {
	t.Parallel()
	both := `
channels: {a: {{ONE}}, b: {{TWO}}}
routes: [{name: default, weights: {a: 1, b: 1}}]
`
	s := newStage(t, both)
	s.publish(300)
	s.apply(
		strings.NewReplacer("b: {{TWO}}}", "b: {{TWO}}, c: {{THREE}}}", "b: 1", "b: 1, c: 1").
			Replace(both),
	)
	s.publish(300)
	s.until("the added channel at work", func() bool {
		s.publish(1) // those chosen for it before it was connected have fallen back
		return s.carrier("THREE").Stats().Accepted > 0
	})
	s.apply(
		strings.NewReplacer("a: {{ONE}}, b: {{TWO}}", "c: {{THREE}}", "a: 1, b: 1", "c: 1").
			Replace(both),
	)
	s.publish(300)
	s.settled()
	s.until("the removed channels to be closed", func() bool {
		return s.carrier("ONE").Stats().Unbinds == 1 && s.carrier("TWO").Stats().Unbinds == 1
	})
	if got := s.carrier("THREE").Stats().Connections; got != 1 {
		t.Errorf("%d connections of a channel that did not change", got)
	}
}

// scorer is a scoring function that prefers one channel and keeps its requests.
type scorer struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []string // guarded by mu
	tokens []string // guarded by mu
	status int      // guarded by mu; 0 is 200
}

func newScorer(t *testing.T, prefers string) *scorer {
	t.Helper()
	s := &scorer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, string(raw))
		s.tokens = append(s.tokens, r.Header.Get("Authorization"))
		var q struct {
			Candidates []struct {
				Channel string `json:"channel"`
			} `json:"candidates"`
		}
		if err := json.Unmarshal(raw, &q); err != nil || s.status != 0 {
			w.WriteHeader(max(s.status, http.StatusBadRequest))
			return
		}
		var scores []string
		for _, c := range q.Candidates {
			score := 0.5
			if c.Channel == prefers {
				score = 0.75
			}
			scores = append(scores, fmt.Sprintf(`{"channel":%q,"score":%g}`, c.Channel, score))
		}
		fmt.Fprintf(w, `{"scores":[%s]}`, strings.Join(scores, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestAScoringFunctionChoosesAndMayFail covers the document, the HTTP request and the stored
// choice.
func TestAScoringFunctionChoosesAndMayFail(t *testing.T) {
	t.Parallel()
	function := newScorer(t, "b")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, `
channels:
  a: {{ONE}, labels: {tier: gold}}
  b: {{TWO}, labels: {tier: silver}, price: {currency: GBP, default: "0.031"}}
routes:
  - name: default
    mode: best_worker
    channels: [a, b]
    scoring: {function: "`+function.URL+`", token_file: "`+token+
		`", allow_private: true, batch: true, deadline: 5s, cache: 0s, parameters: {x: 1}}
`, filepath.Dir(token))
	s.sendable("a", "b")
	s.publish(20)
	s.settled()
	if one, two := s.carrier("ONE").Stats().Accepted, s.carrier("TWO").Stats().Accepted; one != 0 ||
		two != 20 {
		t.Errorf("%d and %d messages, though the function prefers b", one, two)
	}
	function.mu.Lock()
	want := `{"route":"default","lane":"transactional","labels":{"tier":"gold"},` +
		`"selectors":[],"candidates":[` +
		`{"channel":"a","labels":{"tier":"gold"},"price":0},` +
		`{"channel":"b","labels":{"tier":"silver"},"price":0.031,"currency":"GBP"}],` +
		`"parameters":{"x":1}}`
	if diff := cmp.Diff(want, function.asked[0]); diff != "" {
		t.Error(diff)
	}
	if function.tokens[0] != "Bearer s3cret" {
		t.Errorf("token %q", function.tokens[0])
	}
	function.status = http.StatusInternalServerError
	function.mu.Unlock()
	s.publish(20)
	s.settled()
	if got := s.carrier("ONE").Stats().Accepted; got != 20 {
		t.Errorf("%d messages went to a, whose label matches", got)
	}
	first, last := s.record("m-00001").Attempts[0].Ranking, s.record("m-00040").Attempts[0].Ranking
	if !strings.Contains(string(first), `"scoring": "function"`) ||
		!strings.Contains(string(last), `"trouble": "function_status"`) {
		t.Errorf("recorded are %s and %s", first, last)
	}
}

// TestWeightsMoveInsideARunningProcess starts a ramp and makes a channel fail. Both create versions
// that new messages are routed with.
func TestWeightsMoveInsideARunningProcess(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
channels: {a: {{ONE}}, b: {{TWO}}}
routes:
  - name: default
    weights: {a: 1, b: 99}
    health: {errors: 3, window: 1m, step: 50, floor: 10, interval: 1s, quiet: 5m}
`)
	ctx := t.Context()
	ramp, err := s.app.Ledger().Ramps.Start(ctx, ledger.Ramp{
		Route: "default", From: map[string]string{"a": "1", "b": "99"},
		To:    map[string]string{"a": "100", "b": "0"},
		Steps: 4, Every: time.Millisecond, Author: "alice", Reason: "b ends",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.until("the ramp to be done", func() bool {
		ramps, err := s.app.Ledger().Ramps.List(ctx, true)
		return err == nil && len(ramps) == 1 && ramps[0].ID == ramp.ID &&
			ramps[0].State == ledger.RampDone
	})
	s.publish(50)
	s.settled()
	if one, two := s.carrier("ONE").Stats().Accepted,
		s.carrier("TWO").Stats().Accepted; one != 50 ||
		two != 0 {
		t.Errorf("%d and %d messages after the ramp from b to a", one, two)
	}
	if got := s.record("m-00001").Message.Plan.Version; got != 5 {
		t.Errorf("chosen under version %d", got)
	}

	version := s.apply(`
channels: {a: {{ONE}}, b: {{TWO}}}
routes:
  - name: default
    weights: {a: 50, b: 50}
    health: {errors: 3, window: 1m, step: 50, floor: 10, interval: 1s, quiet: 5m}
`)
	s.carrier("TWO").SetBehaviour(smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: pdu.StatusSysErr})
	s.publish(50)
	s.until("the failing channel to be at its floor", func() bool {
		v, err := s.app.Ledger().Routing.Current(ctx)
		return err == nil && v.Base == version && strings.Contains(string(v.Effects), `"b": "5"`)
	})
	s.until("the others to be carried by a",
		func() bool { return s.totals().Messages[ledger.Accepted] >= 100 })
	if v, err := s.app.Ledger().Routing.Current(ctx); err != nil || v.Author != "health" ||
		v.Document == "" {
		t.Errorf("%v: got %+v", err, v)
	}
}

// TestAGuardPausesAPrefixInsideARunningProcess: it counts what the process receives. Nothing more
// is sent to the prefix that it pauses; messages to others are all sent.
func TestAGuardPausesAPrefixInsideARunningProcess(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour) // guards compare the running hour
	const guarded = oneChannel + "guards: [{per: prefix, times: 5, at_least: 30}]\n"
	s := newStage(t, guarded)
	ctx, guards := t.Context(), s.app.Ledger().Guards
	now, err := s.app.Ledger().Clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// In the first seconds of an hour guards still count in the one before.
	hour := now.UTC().Truncate(time.Hour)
	hours := []time.Time{hour, hour.Add(-time.Hour)}
	for _, hour := range hours {
		if err := guards.AddPrefixes(ctx, hour.Add(-24*time.Hour), 4,
			map[string]int64{"+4477": 2}); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the process to count", func() bool {
		_, counted, err := guards.Prefixes(ctx, 4, hours)
		return err == nil && counted > 0
	})
	s.publish(30)
	s.settled()

	// Guards count every 30 seconds, and at once when a document has guards again.
	s.apply(strings.Replace(oneChannel, "default", "unguarded", 1))
	s.until("no guards", func() bool {
		_, values := s.scraped()
		return values[`dispatcher_steer_agreed_share{channel="a", route="unguarded"}`] == 1
	})
	version := s.apply(guarded)
	s.until("the pause to be in force", func() bool { return inForce(s.app.reloader) > version })
	v, err := s.app.Ledger().Routing.Current(ctx)
	if err != nil || v.Author != "guard" ||
		!strings.HasPrefix(v.Reason, "prefix +4477: 30 messages ") {
		t.Fatalf("%v: got %+v", err, v)
	}
	doc, err := config.ParseDocument("current", []byte(v.Document))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Paused{Prefixes: []string{"+4477"}}, doc.Routing.Paused); diff != "" {
		t.Error(diff)
	}
	s.publish(10)
	if err := s.producer.ProduceSync(ctx, &kgo.Record{
		Value: []byte(`{"id":"other","to":"+18765550123","text":"Hello"}`),
	}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s.until("the message to another prefix to be accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == 31 })
	if totals := s.totals(); totals.Messages[ledger.Waiting] != 10 {
		t.Errorf("got %+v", totals)
	}
	if got := s.carrier("ONE").Stats().Submits; got != 31 {
		t.Errorf("%d submits, want none of the paused prefix", got)
	}
}

// TestReadinessSaysWhichSettingsAreNotInForce: /readyz names them.
func TestReadinessSaysWhichSettingsAreNotInForce(t *testing.T) {
	t.Parallel()
	s := newStage(t, oneChannel)
	version := s.apply(
		strings.Replace(s.address(oneChannel), "window: 20", "window: 20, password_file: missing",
			1),
	)
	s.until("the version to be in force", func() bool { return inForce(s.app.reloader) == version })
	checks := s.app.readiness.checks(t.Context())
	at := slices.IndexFunc(checks, func(c console.Check) bool { return c.Name == "channel a" })
	if at < 0 || checks[at].OK || checks[at].Vital ||
		!strings.Contains(
			checks[at].Detail,
			"the settings in force cannot be used here: channel a: password_file: ",
		) {
		t.Errorf("got %+v", checks)
	}
	s.publish(5)
	s.settled() // over the old connection
}

func inForce(r *reloader) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// TestReceiptsOfEveryKindOfChannelFreeTheirSlots: two slots that are held for an hour suffice for
// twenty messages, because receipts free them: from a carrier, a sandbox and a test channel.
func TestReceiptsOfEveryKindOfChannelFreeTheirSlots(t *testing.T) {
	t.Parallel()
	for name, channel := range map[string]string{
		"carrier": "{ONE}", "sandbox": "provider: sandbox", "test": "provider: sandbox, test: true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(
				t,
				strings.Replace(oneChannel, "{{ONE}}",
					"{"+channel+", active: {max: 2, until: receipt, hold: 1h}}", 1),
			)
			if name == "carrier" {
				s.carrier("ONE").SetBehaviour(smpptest.Behaviour{Receipts: true})
			}
			s.publish(20)
			s.until("all messages delivered",
				func() bool { return s.totals().Messages[ledger.Delivered] == 20 })
		})
	}
}

// TestAChannelAsksForReceiptsOnceItHoldsSlots: the change of the document opens a new connection,
// because the old one did not ask for receipts.
func TestAChannelAsksForReceiptsOnceItHoldsSlots(t *testing.T) {
	t.Parallel()
	const channel = `
channels: {a: {%, settings: {address: "{ADDRESS}", system_id: me, registered_delivery: none},
  active: {max: 2#}}}
routes: [{name: default, weights: {a: 1}}]
`
	carrier, err := smpptest.Start(
		smpptest.Config{
			Log:       -1,
			Behaviour: smpptest.Behaviour{Receipts: true, ReceiptDelay: 20 * time.Millisecond},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	document := strings.NewReplacer("%", "provider: smpp", "{ADDRESS}", carrier.Addr()).
		Replace(channel)
	s := newStage(t, strings.Replace(document, "#", "", 1))
	s.publish(5)
	s.until("five messages accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == 5 })
	s.apply(strings.Replace(document, "#", ", until: receipt, hold: 1h", 1))
	s.until("the new connection", func() bool { return carrier.Stats().Unbinds == 1 })
	s.publish(20)
	s.until("all others delivered",
		func() bool { return s.totals().Messages[ledger.Delivered] == 20 })
	for i, submit := range carrier.Submits() {
		if submit.Receipt != (i >= 5) {
			t.Errorf("submit %d asks for a receipt: %t", i, submit.Receipt)
		}
	}
}

const turkish = `
channels:
  a:
    provider: smpp
    settings: {address: "{ADDRESS}", system_id: me, window: 20,
      shift_locking: [turkish], shift_single: [turkish]}
    price: {currency: EUR, default: "0.04"}
    senders: {rules: [{country: gb, allow: [long_code], from: "60777"}]}
routes: [{name: default, weights: {a: 1}, substitute: true, max_segments: 2}]
blocked: {premium: true}
`

// TestATextReachesTheWireAsItWasCounted sends typical input: a recipient without country code, a
// sender that the carrier does not accept, national letters and curly quotes.
func TestATextReachesTheWireAsItWasCounted(t *testing.T) {
	t.Parallel()
	s := newStage(t, oneChannel)
	s.apply(strings.ReplaceAll(turkish, "{ADDRESS}", s.carrier("TWO").Addr()))
	text := "İstanbul’da " + strings.Repeat("ş", 150)
	for _, value := range []string{
		`{"id":"long","to":"07400 123456","from":"ACME","text":"` + text + `"}`,
		// the same message
		`{"id":"long","to":"+447400123456","from":"ACME","text":"` + text + `"}`,
		`{"id":"premium","to":"09098 765432","text":"x"}`,
		`{"id":"no-number","to":"12","text":"x"}`,
		`{"id":"bad-sender","to":"07400 123456","from":"АСМЕ","text":"x"}`,
		`{"id":"too-long","to":"07400 123456","text":"` + strings.Repeat("ş", 299) + `"}`,
	} {
		if err := s.producer.ProduceSync(t.Context(),
			&kgo.Record{Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.until("all of them done", func() bool {
		m := s.totals().Messages
		return m[ledger.Accepted] == 1 && m[ledger.Rejected] == 1 && m[ledger.Dead] == 3
	})
	r := s.record("long")
	if len(r.Attempts) != 1 || r.Attempts[0].Segments != 2 || r.Attempts[0].PriceMicros != 80_000 ||
		r.Message.Plan.Segments != 3 {
		t.Errorf("attempts %+v, %d segments in the default alphabets", r.Attempts,
			r.Message.Plan.Segments)
	}
	submits := s.carrier("TWO").Submits()
	if len(submits) != 2 {
		t.Fatalf("%d PDUs, want 2", len(submits))
	}
	whole := ""
	for _, submit := range submits {
		whole += submit.Text
		if submit.To != "447400123456" || submit.From != "60777" {
			t.Errorf("from %q to %q", submit.From, submit.To)
		}
	}
	if want := "İstanbul'da " + strings.Repeat("ş", 150); whole != want {
		t.Errorf("the subscriber got %q", whole)
	}
	for id, reason := range map[string]string{
		"premium":   "blocked_number",
		"no-number": "bad_number", "bad-sender": "bad_sender", "too-long": "too_many_segments",
	} {
		if got := s.record(id).Message.Reason; got != reason {
			t.Errorf("%s: %q, want %q", id, got, reason)
		}
	}
}
