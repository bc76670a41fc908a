package app

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger"
)

const turkish = `
channels:
  a:
    provider: smpp
    settings: {address: "{ADDRESS}", system_id: me, window: 20, shift_locking: [turkish], shift_single: [turkish]}
    price: {currency: EUR, default: "0.04"}
    senders: {rules: [{country: gb, allow: [long_code], from: "60777"}]}
routes: [{name: default, weights: {a: 1}, substitute: true, max_segments: 2}]
blocked: {premium: true}
`

// TestATextReachesTheWireAsItWasCounted sends what producers write: a recipient without country code, a sender that the
// carrier does not take, national letters and curly quotes.
func TestATextReachesTheWireAsItWasCounted(t *testing.T) {
	t.Parallel()
	s := newStage(t, oneChannel)
	s.apply(strings.ReplaceAll(turkish, "{ADDRESS}", s.carrier("TWO").Addr()))
	text := "İstanbul’da " + strings.Repeat("ş", 150)
	for _, value := range []string{
		`{"id":"long","to":"07400 123456","from":"ACME","text":"` + text + `"}`,
		`{"id":"long","to":"+447400123456","from":"ACME","text":"` + text + `"}`, // the same message
		`{"id":"premium","to":"09098 765432","text":"x"}`,
		`{"id":"no-number","to":"12","text":"x"}`,
		`{"id":"bad-sender","to":"07400 123456","from":"АСМЕ","text":"x"}`,
		`{"id":"too-long","to":"07400 123456","text":"` + strings.Repeat("ş", 299) + `"}`,
	} {
		if err := s.producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.until("all of them done", func() bool {
		m := s.totals().Messages
		return m[ledger.Accepted] == 1 && m[ledger.Rejected] == 1 && m[ledger.Dead] == 3
	})
	r := s.record("long")
	if len(r.Attempts) != 1 || r.Attempts[0].Segments != 2 || r.Attempts[0].PriceMicros != 80_000 || r.Message.Plan.Segments != 3 {
		t.Errorf("attempts %+v, %d segments in the default alphabets", r.Attempts, r.Message.Plan.Segments)
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
		t.Errorf("the subscriber reads %q", whole)
	}
	for id, reason := range map[string]string{"premium": "blocked_number", "no-number": "bad_number", "bad-sender": "bad_sender", "too-long": "too_many_segments"} {
		if got := s.record(id).Message.Reason; got != reason {
			t.Errorf("%s: %q, want %q", id, got, reason)
		}
	}
}
