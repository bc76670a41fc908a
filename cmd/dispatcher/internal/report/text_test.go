package report

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// misprinted matches what templates and verbs print for values that they cannot format, empty
// parentheses, and blanks before punctuation.
var misprinted = regexp.MustCompile(`<nil>|<no value>|%!| \.|\.\.| ,|\(\)|0x[0-9a-f]{8,}`)

// TestEveryRecordIsExplained: for any row, whatever is missing beside it, there is a paragraph of
// whole sentences.
func TestEveryRecordIsExplained(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(r *rapid.T) {
		pick := func(label string, of ...string) string {
			return rapid.SampledFrom(of).Draw(r, label)
		}
		reasons := []string{
			"", "no_slot", "reserved", "no_share", "tenant_limit", "no_budget", "connecting",
			"selector",
			"expired", "cut_otherwise", "all_tried", "opted_out", "blocked_number", "no_channel",
			"country_not_allowed",
			"never_heard_of",
		}
		on := []string{"", "a", "a 1s messages", "a 1d money", "tenant:shop 1m segments"}
		record := newRecord(ledger.State(pick("state", "scheduled", "waiting", "retry", "failed",
			"unknown",
			"delivered", "undelivered", "no_receipt", "rejected", "sending", "accepted", "dead")))
		m := &record.Message
		m.Reason, m.WaitsFor = pick("reason", reasons...), pick("on", on...)
		if m.State == ledger.Dead || m.State == ledger.Waiting && m.Reason == "" {
			m.Reason = "bad_json" // these always have a reason
		}
		m.NextAt = ten.Add(time.Duration(rapid.IntRange(0, 700).Draw(r, "next")) * time.Second)
		m.PossibleDuplicate = rapid.Bool().Draw(r, "duplicate")
		if rapid.Bool().Draw(r, "waits now") {
			m.WaitingSince = ten
		}
		ranking := func() []byte {
			var all []decide.Ranked
			n := rapid.IntRange(1, 4).Draw(r, "ranked")
			for _, channel := range []string{"a", "b", "c", "gone"}[:n] {
				one := ranked(channel, 3, pick("why", reasons...))
				if decide.IsLimit(one.Reason) {
					one.Limit = rapid.SampledFrom([]decide.LimitName{
						{},
						{Key: admission.Key{Window: admission.Day}},
						{Key: admission.Key{
							Scope: admission.Scope{Tenant: "shop"}, Window: admission.Minute,
						}, Over: true},
					}).Draw(r, "limit")
				}
				all = append(all, one)
			}
			return encode(pick("by", "load_ratio", "best_worker", "round_robin", "redraw", "wait"),
				all...)
		}
		if rapid.Bool().Draw(r, "seen") {
			record.Seen = ranking()
			m.Waits = []ledger.Wait{
				{Reason: pick("waited", reasons[1:]...), On: pick("for", on...), For: time.Second},
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(r, "attempts") {
			why := pick("attempt reason", "first_choice", "fallback", "retry", "resend",
				"no_receipt")
			a := attempt(pick("channel", "a", "b", "gone"), ledger.AttemptReason(why),
				pick("outcome", "", "accepted", "rejected", "refused", "throttled", "unknown"),
				pick("code", "", "late", "stopping", "expired", "operator", "lookup", "E1"))
			a.Number, a.ClaimedAt, a.Currency = i+1, ten.Add(time.Duration(i)*time.Second), "GBP"
			a.Segments = rapid.IntRange(0, 2).Draw(r, "segments")
			if rapid.Bool().Draw(r, "settled") {
				a.SettledAt, a.ReceiptAt = a.ClaimedAt.Add(time.Second), a.ClaimedAt.Add(2*time.Second)
			}
			if rapid.Bool().Draw(r, "was ranked") {
				a.Ranking = ranking()
			}
			if rapid.Bool().Draw(r, "has receipt") {
				a.Receipt, a.Cause = m.State, provider.Absent
			}
			record.Attempts = append(record.Attempts, a)
			record.Ambiguities = append(record.Ambiguities, ledger.AmbiguityRecord{
				Last: i + 1, Until: ten,
				Step: ledger.Step(pick("step", "same_key", "lookup", "receipt", "none")),
				ResolvedAs: ledger.ResolvedAs(pick("resolution", "", "taken", "not_taken", "resent",
					"final")),
			})
		}
		src := &Source{Record: record}
		if rapid.Bool().Draw(r, "document") {
			doc := document("default", "a", "25", "b", "15", "c", "60")
			doc.Routes[0].Mode = config.Mode(pick("mode", "weighted", "round_robin", "longest_idle",
				"best_worker"))
			doc.Channels[0].Limits = []admission.Limit{
				{Window: admission.Second, Max: rapid.Int64Range(0, 2).Draw(r, "max")},
				budget(admission.Scope{}, 5),
			}
			src.Doc, src.WaitDoc = doc, doc
		}
		if rapid.Bool().Draw(r, "now") {
			src.Now = lookedBack
		}
		if rapid.Bool().Draw(r, "ahead") {
			src.Ahead = ten.Add(time.Hour)
		}
		if rapid.Bool().Draw(r, "no deadline") {
			m.ExpiresAt = time.Time{}
		}
		e, err := Explain(src)
		if err != nil {
			r.Fatal(err)
		}
		if found := misprinted.FindString(e.Text); found != "" || !strings.HasSuffix(e.Text, ".") {
			r.Fatalf("%q in %s", found, e.Text)
		}
	})
}
