package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Further values of audit.attempts.outcome.
const (
	outcomeRejected  = "rejected"
	outcomeRefused   = "refused"
	outcomeThrottled = "throttled"
)

// ten is ten o'clock in London, which is on UTC in November.
var ten = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// newRecord returns a message of route default whose draw of 17 picked a.
func newRecord(state ledger.State, attempts ...ledger.AttemptRecord) *ledger.Record {
	r := &ledger.Record{
		Message: ledger.Message{
			ID: "order-7731-otp", Lane: "otp", Tenant: "shop", State: state, ReceivedAt: ten,
			ExpiresAt: ten.Add(10 * time.Minute),
			Envelope: []byte(`{"id":"order-7731-otp","to":"+447700900123","text":"Your code is ` +
				`123456"}`),
			Origin: ledger.Origin{Topic: "sms.otp", Partition: 3, Offset: 9},
			Plan: ledger.Plan{
				Route: "default", Version: 3, Draw: 17, Size: 100, KeyID: "0a0b0c0d",
				FirstChoice: "a", Segments: 1, Alphabet: "gsm7",
			},
		},
		Attempts: attempts,
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Number, a.Currency = i+1, "GBP"
		a.ClaimedAt = ten.Add(time.Duration(2*i)*time.Second + 3*time.Millisecond)
		if a.Outcome != "" {
			a.SettledAt = a.ClaimedAt.Add(12 * time.Millisecond)
		}
	}
	return r
}

func attempt(
	channel string, reason ledger.AttemptReason, outcome, code string, ranking ...decide.Ranked,
) ledger.AttemptRecord {
	a := ledger.AttemptRecord{
		Attempt: ledger.Attempt{Channel: channel, Reason: reason},
		Outcome: outcome, Code: code,
	}
	if outcome == outcomeAccepted || outcome == outcomeUnknown {
		a.Segments, a.PriceMicros = 1, 28_000
	}
	if outcome == outcomeAccepted {
		a.Reference = "7F-" + channel
	}
	if ranking != nil {
		a.Ranking = encode("load_ratio", ranking...)
	}
	return a
}

func encode(by string, ranking ...decide.Ranked) []byte {
	raw, err := json.Marshal(decide.Ranking{Version: 3, By: by, Candidates: ranking})
	if err != nil {
		panic(err)
	}
	return raw
}

func ranked(channel string, active int64, reason string) decide.Ranked {
	return decide.Ranked{Channel: channel, Active: active, Capacity: 100, Reason: reason}
}

// records returns the records of the golden files.
func records() map[string]*ledger.Record {
	first := attempt("a", ledger.ByFirstChoice, outcomeAccepted, "")
	fallback := attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "no_slot"),
		ranked("c", 40, ""))
	out := map[string]*ledger.Record{
		"first-choice": newRecord(ledger.Accepted, first),
		"fallback":     newRecord(ledger.Accepted, fallback),
		"fallback-over-two": newRecord(ledger.Accepted, attempt("b", ledger.ByFallback,
			outcomeAccepted, "",
			ranked("a", 0, "breaker_open"), ranked("c", 40, "connecting"), ranked("b", 80, ""))),
		"throttled-then-next": newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice,
			outcomeThrottled, "0x00000058"),
			attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "throttled"),
				ranked("c", 40, ""))),
		"throttled-then-retried": newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice,
			outcomeThrottled, "0x00000058"),
			attempt("a", ledger.ByRetry, outcomeAccepted, "")),
		"refused-then-next": newRecord(ledger.Delivered, attempt("a", ledger.ByFirstChoice,
			outcomeRefused, "dial"),
			attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "already_tried"),
				ranked("c", 40, ""))),
		"delivered": newRecord(ledger.Delivered, receipted(ledger.Delivered,
			provider.Unspecified, "DELIVRD")),
		"undelivered": newRecord(ledger.Undelivered, receipted(ledger.Undelivered,
			provider.Absent, "UNDELIV/001")),
		"undelivered-plain": newRecord(ledger.Undelivered, receipted(ledger.Undelivered,
			provider.Unspecified, "")),
		"no-receipt": newRecord(ledger.NoReceipt, receipted(ledger.NoReceipt,
			provider.Unspecified, "")),
		"held-back": newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeRefused,
			"stopping"),
			attempt("a", ledger.ByRetry, outcomeAccepted, "")),
		"unknown": newRecord(ledger.Unknown, attempt("a", ledger.ByFirstChoice, outcomeUnknown,
			"timeout")),
		"rejected": newRecord(ledger.Rejected, attempt("a", ledger.ByFirstChoice, outcomeRejected,
			"0x0000000b")),
		"pending":   newRecord(ledger.Sending, attempt("a", ledger.ByFirstChoice, "", "")),
		"scheduled": newRecord(ledger.Scheduled),
	}
	out["scheduled"].Message.NextAt = ten.AddDate(0, 0, 1)
	goesOn := newRecord(ledger.Accepted, first)
	goesOn.Message.NextAt = ten.Add(10 * time.Minute)
	out["goes-on-without-a-receipt"] = goesOn
	further := attempt("c", ledger.ByNoReceipt, outcomeAccepted, "",
		ranked("a", 0, "already_tried"), ranked("c", 40, ""))
	further.ClaimedAt = ten.Add(10 * time.Minute)
	further.SettledAt = further.ClaimedAt.Add(time.Second)
	wentOn := newRecord(ledger.Accepted, first, further)
	wentOn.Message.PossibleDuplicate = true
	out["went-on-without-a-receipt"] = wentOn
	out["unfit-then-next"] = newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice,
		outcomeRefused, "0x0000000a"),
		attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "already_tried"),
			ranked("c", 40, "")))
	out["unfit-then-next"].Attempts[0].Unfit = true
	inPart := newRecord(ledger.Rejected, attempt("a", ledger.ByFirstChoice, outcomeRejected,
		"0x0000000b"))
	inPart.Message.Plan.Segments, inPart.Attempts[0].Segments, inPart.Attempts[0].PriceMicros = 3, 2,
		56_000
	out["rejected-in-part"] = inPart
	denied := newRecord(ledger.Delivered, attempt("a", ledger.ByFirstChoice, outcomeRefused,
		"0x00000008"),
		attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "already_tried"),
			ranked("c", 40, "")))
	denied.Message.PossibleDuplicate = true
	denied.Attempts[0].ContradictedAt, denied.Attempts[0].OtherIDs = ten.Add(5*time.Second),
		[]string{"7F31"}
	out["denied-and-delivered"] = denied
	renamed := newRecord(ledger.Delivered, receipted(ledger.Delivered, provider.Unspecified,
		"DELIVRD"))
	renamed.Attempts[0].OtherIDs = []string{"0x7F"}
	out["delivered-under-another-id"] = renamed
	addWaits(out)
	addUnusual(out)
	return out
}

// receipted returns an accepted attempt with the state of its receipts.
func receipted(state ledger.State, cause provider.Cause, code string) ledger.AttemptRecord {
	a := attempt("a", ledger.ByFirstChoice, outcomeAccepted, "")
	a.Receipt, a.Cause, a.ReceiptCode = state, cause, code
	if state != ledger.NoReceipt {
		a.ReceiptAt = ten.Add(3212 * time.Millisecond)
	}
	return a
}

func addWaits(out map[string]*ledger.Record) {
	waiting := newRecord(ledger.Waiting)
	waiting.Message.Reason, waiting.Message.NextAt = "no_slot", ten.Add(time.Second)
	waiting.Seen = encode("load_ratio", ranked("a", 0, "no_slot"), ranked("c", 40, "price_cap"),
		ranked("b", 80, "draining"))
	out["waiting"] = waiting

	held := newRecord(ledger.Waiting)
	held.Message.Reason, held.Message.NextAt = "no_slot", ten.Add(time.Second)
	held.Seen = encode("wait", ranked("a", 0, "no_slot"))
	out["waiting-for-first-choice"] = held

	tried := newRecord(ledger.Waiting, attempt("a", ledger.ByFirstChoice, outcomeRefused, "dial"))
	tried.Message.Reason, tried.Message.NextAt = "all_tried", ten.Add(8*time.Second)
	tried.Seen = encode("load_ratio", ranked("a", 0, "already_tried"))
	out["waiting-for-a-new-round"] = tried

	waited := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeAccepted, ""))
	waited.Seen = encode("load_ratio", ranked("a", 0, "no_slot"), ranked("c", 40, "no_active"),
		ranked("b", 80, "disabled"))
	waited.Attempts[0].ClaimedAt = ten.Add(2400 * time.Millisecond)
	waited.Attempts[0].SettledAt = ten.Add(2500 * time.Millisecond)
	waited.Message.Waits = []ledger.Wait{{
		Reason: "no_slot", On: "a 1s messages",
		For: 2400 * time.Millisecond,
	}}
	out["waited"] = waited

	refused := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeRefused,
		"dial"),
		attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "already_tried"),
			ranked("c", 40, "")))
	refused.Seen = encode("load_ratio", ranked("a", 0, "already_tried"), ranked("c", 40, "no_slot"))
	refused.Message.Waits = []ledger.Wait{{
		Reason: "no_slot", On: "c 1s messages",
		For: 1985 * time.Millisecond,
	}}
	out["refused-then-waited"] = refused

	slow := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeRefused, "dial"),
		attempt("c", ledger.ByFallback, outcomeAccepted, "", ranked("a", 0, "already_tried"),
			ranked("c", 40, "")))
	slow.Seen = encode("load_ratio", ranked("a", 0, "connecting"), ranked("c", 40, "no_slot"))
	slow.Message.ReceivedAt = ten.Add(-90 * time.Second)
	slow.Message.Waits = []ledger.Wait{{Reason: "connecting", On: "a", For: 90 * time.Second}}
	out["waited-then-refused"] = slow

	expired := newRecord(ledger.Failed)
	expired.Message.Reason = "expired"
	out["expired"] = expired
	addLimits(out)

	recut := newRecord(ledger.Failed, attempt("a", ledger.ByFirstChoice, outcomeThrottled,
		"0x00000058"))
	recut.Message.Reason, recut.Message.Plan.Segments, recut.Attempts[0].Segments, recut.Attempts[0].PriceMicros = "cut_otherwise", 3, 2, 56_000
	recut.Message.Waits = []ledger.Wait{{Reason: "cut_otherwise", On: "a", For: 599 * time.Second}}
	recut.Seen = encode("load_ratio", ranked("a", 0, "cut_otherwise"),
		ranked("c", 40, "pinned_elsewhere"), ranked("b", 0, "pinned_elsewhere"))
	out["recut"] = recut

	hopeless := newRecord(ledger.Failed)
	hopeless.Message.Reason = "no_channel"
	hopeless.Seen = encode("load_ratio", ranked("a", 0, "selector"), ranked("c", 0, "price_cap"),
		ranked("b", 0, "selector"))
	out["no-channel"] = hopeless
}

// addLimits adds messages with known waits for limits.
func addLimits(out map[string]*ledger.Record) {
	long := []ledger.Wait{
		{Reason: "no_slot", On: "a 1s messages", For: 11900 * time.Millisecond},
		{Reason: "tenant_limit", On: "tenant:shop 1m messages", For: 500 * time.Millisecond},
		{Reason: "no_budget", On: "a prefix:+44 1d money", For: 90 * time.Second},
		{Reason: "no_route", For: 30 * time.Second},
		{Reason: "reserved", On: "b 1m messages", For: 20 * time.Millisecond},
		{Reason: "no_share", On: "b 1m messages", For: 2 * time.Second},
		{Reason: "prefix_limit", On: "prefix:+44 1h segments", For: time.Second},
		{Reason: "throttled", On: "c", For: 3 * time.Second},
	}
	limited := newRecord(ledger.Accepted, attempt("c", ledger.ByFallback, outcomeAccepted, "",
		ranked("a", 0, "tenant_limit"), ranked("b", 0, "no_budget"), ranked("c", 40, "")))
	limited.Seen = encode("load_ratio", ranked("a", 0, "no_slot"))
	limited.Message.Waits = long
	limited.Attempts[0].ClaimedAt = ten.Add(138 * time.Second)
	limited.Attempts[0].SettledAt = ten.Add(138*time.Second + 12*time.Millisecond)
	out["waited-for-limits"] = limited

	name := func(c decide.Ranked, l admission.Limit, over bool) decide.Ranked {
		c.Limit = decide.NameLimit(&l, over)
		return c
	}
	out["limits-named"] = newRecord(ledger.Accepted, attempt("c", ledger.ByFallback,
		outcomeAccepted, "",
		name(ranked("a", 0, "no_slot"), admission.Limit{Window: admission.Hour}, false),
		name(ranked("b", 0, "tenant_limit"), admission.Limit{
			Scope: admission.Scope{Tenant: "shop"}, Window: admission.Day,
		}, true),
		name(ranked("d", 0, "no_budget"), admission.Limit{
			Window: admission.Prepaid, Unit: admission.Money,
		}, false),
		name(ranked("e", 0, "reserved"), admission.Limit{Window: admission.Minute}, false),
		ranked("c", 40, "")))

	still := newRecord(ledger.Waiting)
	still.Message.Reason, still.Message.NextAt = "no_slot", ten.Add(13*time.Second)
	still.Seen = encode("load_ratio", ranked("a", 0, "reserved"), ranked("c", 0, "reserved"))
	still.Message.Waits = long[:1]
	out["waiting-for-limits"] = still

	tooLate := newRecord(ledger.Failed)
	tooLate.Message.Reason, tooLate.Message.Waits = "expired", long[1:2]
	out["expired-at-a-limit"] = tooLate

	late := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeRefused, "late"),
		attempt("a", ledger.ByRetry, outcomeAccepted, ""))
	out["late"] = late
}

func addUnusual(out map[string]*ledger.Record) {
	resent := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeUnknown,
		"bind_lost"),
		attempt("c", ledger.ByResend, outcomeAccepted, "", ranked("a", 0, "already_tried"),
			ranked("c", 40, "")))
	resent.Message.PossibleDuplicate = true
	out["resent"] = resent

	inVain := newRecord(ledger.Unknown, attempt("a", ledger.ByFirstChoice, outcomeUnknown,
		"bind_lost"),
		attempt("c", ledger.ByResend, outcomeRejected, "0x0000000b",
			ranked("a", 0, "already_tried"), ranked("c", 40, "")))
	inVain.Message.PossibleDuplicate, inVain.Message.Reason = true, "ambiguous_final"
	inVain.Ambiguities = []ledger.AmbiguityRecord{{
		Attempt: 1, Last: 1, Step: ledger.NoStep,
		ResolvedAs: ledger.Resent,
	}}
	out["resent-in-vain"] = inVain

	partly := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeThrottled,
		"0x00000058"),
		attempt("a", ledger.ByRetry, outcomeAccepted, ""))
	partly.Message.Plan.Segments = 3
	partly.Attempts[0].Segments, partly.Attempts[0].PriceMicros = 2, 56_000
	out["partly-accepted"] = partly

	dead := newRecord(ledger.Dead)
	dead.Message.Plan, dead.Message.Reason = ledger.Plan{}, "no_route"
	out["dead"] = dead
	segments := newRecord(ledger.Dead)
	segments.Message.Plan, segments.Message.Reason = ledger.Plan{}, "too_many_segments"
	segments.Message.Detail = "its text has 12 segments, route default allows 10"
	out["dead-with-detail"] = segments

	nameless := newRecord(ledger.Dead)
	nameless.Message.Plan, nameless.Message.Reason, nameless.Message.Tenant = ledger.Plan{},
		"bad_json", ""
	nameless.Message.ID = "record without a usable message id, known by its position in Kafka: " +
		"sms.otp/3/9"
	out["dead-without-id"] = nameless
}

func london(t *testing.T) *config.Routing {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	doc := document("default", "a", "25", "b", "15", "c", "60")
	doc.Timezone = zone
	return doc
}

// lookedBack is the time at which records with a known waiting_since are explained.
var lookedBack = ten.Add(40 * time.Second)

// explained explains a record under the document of its plan and of its last wait.
func explained(r *ledger.Record, doc *config.Routing, keys ...selector.Key) (Explanation, error) {
	src := &Source{Record: r, Doc: doc, WaitDoc: doc, Keys: keys}
	if !r.Message.WaitingSince.IsZero() {
		src.Now = lookedBack
	}
	return Explain(src)
}

// explain is explained for a record that can be explained.
func explain(
	t *testing.T, r *ledger.Record, doc *config.Routing, keys ...selector.Key,
) Explanation {
	t.Helper()
	e, err := explained(r, doc, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// forecast is Forecast for an answer that can be explained.
func forecast(
	t *testing.T, id string, a *decide.Explanation, doc *config.Routing, keys ...selector.Key,
) Explanation {
	t.Helper()
	e, err := Forecast(id, a, doc, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestParagraphsOfRecordsReadAsTheirGoldenFile(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for name, record := range records() {
		doc := london(t)
		if record.Message.Plan.Version == 0 {
			doc = nil
		}
		e := explain(t, record, doc)
		texts[name] = e.Text
		all, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"447700900123", "Your code"} {
			if strings.Contains(string(all), secret) {
				t.Errorf("%s shows %q", name, secret)
			}
		}
	}
	for name, one := range recordsOfModes() {
		texts[name] = explain(t, one.record, one.with(t)).Text
	}
	for name, record := range recordsWithSelectors() {
		texts[name] = explain(t, record, london(t)).Text
	}
	first := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeAccepted, ""))
	texts["lowered-weight"] = explain(t, first, lower(london(t), "c", "45")).Text
	golden(t, "records.txt", texts)
}

// golden compares paragraphs with a file under testdata, or writes it: a section for each, one
// sentence per line.
func golden(t *testing.T, file string, texts map[string]string) {
	t.Helper()
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&got, "# %s\n%s\n\n", name, strings.ReplaceAll(texts[name], ". ", ".\n"))
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(),
		"\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestExplanationHasTheKeysOfTheContract: and those that docs/commands.md adds.
func TestExplanationHasTheKeysOfTheContract(t *testing.T) {
	t.Parallel()
	r := records()["resent-in-vain"]
	r.Message.Waits = []ledger.Wait{{Reason: "connecting", On: "a", For: time.Second}}
	raw, err := json.Marshal(explain(t, r, london(t)))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "alphabet ambiguities attempts candidates chosen country deadline draw draw_key_id " +
			"first_choice id " +
			"interval lane mode possible_duplicate ranked_by ranked_version reason received_at " +
			"route " +
			"routing_version segments size state tenant text timeline waits",
		"interval":    "high low",
		"ambiguities": "asked attempt author note resolution step until",
		"waits":       "on reason seconds",
		"timeline":    "at detail event title",
		"candidates":  "channel eligible load_ratio reason score",
		"attempts": "attempt channel claimed_at cost_micros currency outcome provider_code " +
			"provider_reference " +
			"reason segments settled_at",
	} {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		if path != "" {
			object := bytes.TrimPrefix(all[path], []byte("["))
			all = nil
			if err := json.NewDecoder(bytes.NewReader(object)).Decode(&all); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(all)), " "); got != want {
			t.Errorf("%q has %s, want %s", path, got, want)
		}
	}
}

func TestExplanationAsDataIsTheContract(t *testing.T) {
	t.Parallel()
	explanation, err := explained(records()["throttled-then-next"], london(t))
	if err != nil {
		t.Fatal(err)
	}
	load := func(f float64) *float64 { return &f }
	want := []Candidate{{
		Channel: "a", LoadRatio: load(0), Eligible: new(false),
		Reason: "throttled",
	}, {Channel: "c", LoadRatio: load(0.4), Eligible: new(true)}}
	if *explanation.Chosen != "c" || explanation.Mode != "weighted" || *explanation.Draw != 17 ||
		*explanation.Size != 100 || !cmp.Equal(explanation.Candidates, want) {
		t.Errorf("%+v %s", explanation, cmp.Diff(want, explanation.Candidates))
	}
	if len(explanation.Attempts) != 2 || explanation.Attempts[0].Outcome != "throttled" ||
		explanation.Attempts[1].CostMicros != 28_000 {
		t.Errorf("got %+v", explanation.Attempts)
	}
	first, err := explained(records()["first-choice"], london(t))
	if err != nil || *first.Chosen != "a" || !cmp.Equal(first.Candidates,
		[]Candidate{{Channel: "a", Eligible: new(true)}}) {
		t.Errorf("got %+v, error %v", first, err)
	}
}

func TestExplanationSaysForHowLongAndForWhatAMessageWaited(t *testing.T) {
	t.Parallel()
	explanation, err := explained(records()["waited-for-limits"], london(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(explanation.Waits[:2])
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"reason":"no_slot","on":"a 1s ` +
		`messages","seconds":11.9},{"reason":"tenant_limit","on":"tenant:shop 1m ` +
		`messages","seconds":0.5}]`
	if string(raw) != want || len(explanation.Waits) != 8 {
		t.Errorf("%d waits, %s", len(explanation.Waits), raw)
	}
	quick, err := explained(records()["first-choice"], london(t))
	if err != nil || quick.Waits == nil || len(quick.Waits) > 0 {
		t.Errorf("waits %v, %v", quick.Waits, err)
	}
}

func TestAStoredRankingThatIsDamagedIsReported(t *testing.T) {
	t.Parallel()
	r := newRecord(ledger.Waiting)
	r.Seen = []byte("{")
	if _, err := explained(r, nil); err == nil {
		t.Error("no error")
	}
}
