package report

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// TestUnexaminedCandidatesAreEligibleOnlyAsFarAsTheVersionShows: b is disabled, d lacks the label,
// and nothing is known of e. b cannot be part of the tie, because it could not have got the
// message.
func TestUnexaminedCandidatesAreEligibleOnlyAsFarAsTheVersionShows(t *testing.T) {
	t.Parallel()
	doc := document("default", "a", "25", "b", "15", "c", "60", "d", "1", "e", "1")
	doc.Routes[0].Mode = "longest_idle"
	label := map[string]selector.Value{"language": selector.TextValue("en")}
	for i := range doc.Channels {
		doc.Channels[i].State, doc.Channels[i].Labels = config.Enabled, label
	}
	doc.Channels[1].State, doc.Channels[3].Labels = config.Disabled, nil
	record := undrawn(choice("c", ledger.ByFirstChoice, &decide.Ranking{
		By: "load_ratio",
		Candidates: []decide.Ranked{
			ranked("a", 0, "no_slot"), assigned("c", 0, 420), assigned("b", 0, 300),
			assigned("d", 0, 200), assigned("e", 0, 100),
		},
	}))
	record.Message.Envelope = []byte(
		`{"id":"1","to":"+447700900123","text":"x","selectors":[{"key":"language","operator":"equal","value":"en"}]}`)
	want := map[string]string{
		"a": "false no_slot", "c": "true ", "b": "false disabled",
		"d": "false selector", "e": "unknown outranked",
	}
	explanation := explain(t, record, doc)
	if got := eligibility(explanation.Candidates); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if !strings.Contains(explanation.Text, "(0 %, the same as e, which got a message later), at") ||
		strings.Contains(explanation.Text, "b could not") {
		t.Error(explanation.Text)
	}

	// It was planned again since, so the other version shows nothing.
	record.Message.Plan.Version = 4
	want["b"], want["d"] = "unknown outranked", "unknown outranked"
	if got := eligibility(explain(t, record, doc).Candidates); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// eligibility returns what each candidate says of itself, by channel.
func eligibility(candidates []Candidate) map[string]string {
	out := map[string]string{}
	for _, c := range candidates {
		eligible := "unknown"
		if c.Eligible != nil {
			eligible = strconv.FormatBool(*c.Eligible)
		}
		out[c.Channel] = eligible + " " + c.Reason
	}
	return out
}

// TestARedrawIsExplainedWithItsNumberDrawAndInterval compares the draws of the explanation with
// those of package selector: each is in the interval of the channel that it picked.
func TestARedrawIsExplainedWithItsNumberDrawAndInterval(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(r *rapid.T) {
		var weights []string
		for i := range rapid.IntRange(2, 8).Draw(r, "channels") {
			weights = append(weights, "c"+strconv.Itoa(i), strconv.Itoa(rapid.IntRange(0, 9).Draw(r,
				"weight")))
		}
		weights[1] = "3" // the first choice, which is listed apart
		doc := document("default", weights...)
		key := selector.Key(bytes.Repeat([]byte{rapid.Byte().Draw(r, "key")}, selector.KeySize))
		table, err := selector.NewTable(doc.Routes[0].Entries())
		if err != nil {
			r.Fatal(err)
		}
		order := table.Redraw(selector.NewDrawer(key), "order-7731-otp", 0)
		names := []decide.Ranked{ranked("c0", 0, "no_slot")}
		for _, at := range order {
			names = append(names, ranked(table.Entry(at).Name, 0, "no_slot"))
		}
		record := newRecord(ledger.Accepted, choice("x", ledger.ByFallback,
			&decide.Ranking{By: "redraw", KeyID: key.ID(), Candidates: append(names,
				ranked("x", 0, ""))}))
		record.Message.Plan.FirstChoice = "c0"
		explanation, err := explained(record, doc, selector.Key{}, key)
		if err != nil {
			r.Fatal(err)
		}
		for i, c := range explanation.Candidates[1 : len(order)+1] {
			last := i == len(order)-1
			switch got := c.Redraw; {
			case got == nil || got.Number != i+2 || got.High >= got.Size:
				r.Fatalf("%s: %+v", c.Channel, got)
			case last != (got.Draw == nil), last && got.Low != 0:
				r.Fatalf("%s: %+v, the last %t", c.Channel, got, last)
			case !last && (*got.Draw < got.Low || *got.Draw > got.High):
				r.Fatalf("%s: %d is not in %+v", c.Channel, *got.Draw, got)
			}
		}
		if explanation.Candidates[0].Redraw != nil || slices.ContainsFunc(explanation.Candidates[len(order)+1:],
			func(c Candidate) bool { return c.Redraw != nil }) {
			r.Fatalf("got %+v", explanation.Candidates)
		}
	})
}

func TestASecondDrawIsInTheExplanation(t *testing.T) {
	t.Parallel()
	var key selector.Key
	drawn := []Candidate{
		{Channel: "c", Redraw: &Redraw{
			Number: 2, Draw: new(uint64(17)), Size: 75, Low: 15,
			High: 74,
		}},
		{Channel: "b", Redraw: &Redraw{Number: 3, Size: 15, High: 14}},
	}
	for at, want := range []string{
		", which was drawn by the weights (draw 2: 17 of 0 to 74, in its interval 15 to 74)",
		", the only one that was left to draw",
	} {
		var got strings.Builder
		r := (&page{Explanation: &Explanation{}}).rank(drawn, &Basis{RankedBy: "redraw"}, at, false)
		if err := templates.ExecuteTemplate(&got, "rank", r); err != nil || got.String() != want {
			t.Errorf("got %q, error %v", &got, err)
		}
	}
	answer := decide.Explanation{
		Plan: ledger.Plan{Route: "default", Draw: 17, Size: 100, FirstChoice: "a", KeyID: key.ID()},
		By:   decide.Redraw,
		Candidates: []decide.Candidate{
			{Channel: "a", Reason: "no_slot"},
			{Channel: "c"},
			{Channel: "b"},
		},
		Decision: ledger.Decision{State: ledger.Sending, Attempt: ledger.Attempt{Channel: "c"}},
	}
	explanation := forecast(t, "order-1", &answer, london(t), key)
	c := explanation.Candidates[1]
	if c.Redraw == nil || c.Redraw.Number != 2 || c.Redraw.Size != 75 || c.Redraw.Draw == nil ||
		c.Redraw.Low != 15 || c.Redraw.High != 74 || explanation.RedrawKeyID != key.ID() {
		t.Errorf("%+v %+v", c.Redraw, explanation)
	}
	if !strings.Contains(explanation.Text, "of 0 to 74, in its interval 15 to 74)") {
		t.Error(explanation.Text)
	}
}

func TestOneChannelIsNoDraw(t *testing.T) {
	t.Parallel()
	record := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeAccepted, ""))
	record.Message.Plan.Draw, record.Message.Plan.Size = 0, 1
	for want, doc := range map[string]*config.Routing{
		"Its first choice was a, the only channel. ": document("default", "a",
			"1"),
		"Its first choice was a, the only channel that draws can pick. ": document("default", "a",
			"1", "b", "0"),
	} {
		if explanation := explain(t, record, doc); !strings.Contains(explanation.Text, want) {
			t.Errorf("%q is not in %s", want, explanation.Text)
		}
	}
}

func TestAForecastNeverSaysThatSomethingHappened(t *testing.T) {
	t.Parallel()
	for state, want := range map[ledger.State]string{
		ledger.Sending: "would_send", ledger.Waiting: "would_wait",
		ledger.Scheduled: "would_schedule", ledger.Failed: "would_fail",
	} {
		answer := decide.Explanation{
			Plan:     ledger.Plan{Route: "default"},
			Decision: ledger.Decision{State: state, Attempt: ledger.Attempt{Channel: "a"}},
		}
		if got := forecast(t, "order-1", &answer, london(t)).State; got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
}
