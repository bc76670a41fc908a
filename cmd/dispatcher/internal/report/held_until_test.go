package report

import (
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
)

// heldMessage explains a message whose first choice has spent its daily budget, on a route that
// waits that long.
func heldMessage(t *testing.T, wait time.Duration, on string) Explanation {
	t.Helper()
	doc := london(t)
	doc.Routes[0].Wait = wait
	doc.Channels[0].Limits = []admission.Limit{budget(admission.Scope{}, 500_000)}
	doc.Channels[0].Price = config.Price{
		Currency: "GBP",
		Lists:    []config.PriceList{{Default: 28_000}},
	}
	r := newRecord(ledger.Waiting)
	m := &r.Message
	m.Reason, m.WaitsFor, m.NextAt, m.WaitingSince = "no_budget", on, ten.Add(50*time.Second),
		ten.Add(11700*time.Millisecond)
	r.Seen = encode("wait", ranked("a", 0, "no_budget"))
	return explain(t, r, doc)
}

// TestExplanationSaysWhenAHeldMessageMayGoElsewhere: the limit has room the next day, and other
// channels may get the message after five minutes.
func TestExplanationSaysWhenAHeldMessageMayGoElsewhere(t *testing.T) {
	t.Parallel()
	for on, want := range map[string]string{
		"a 1d money": "It waits for its first choice, as route default lets messages do, and so " +
			"for the limit of a: its 0.50 GBP of the day are spent. " +
			"It is kept for a until 10:05:00 GMT, then others may have it. The limit has room " +
			"again on 22 November 2026 at 00:00:00 GMT. ",
		"a": "It waits for its first choice, as route default lets messages do, because a could " +
			"not take it (budget of the running window spent). " +
			"It is kept for a until 10:05:00 GMT, then others may have it. It is considered " +
			"again " +
			"at 10:00:50 GMT.",
	} {
		explanation := heldMessage(t, 5*time.Minute, on)
		if !strings.Contains(explanation.Text, want) {
			t.Errorf("%s: got %s, want %q in it", on, explanation.Text, want)
		}
		if explanation.HeldUntil == nil || !explanation.HeldUntil.Equal(ten.Add(5*time.Minute)) {
			t.Errorf("%s: held until %v", on, explanation.HeldUntil)
		}
	}
}

// TestExplanationPromisesNoOtherChannelToAMessageThatExpiresFirst: nor to one whose wait for its
// first choice is over.
func TestExplanationPromisesNoOtherChannelToAMessageThatExpiresFirst(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{
		"as long as it lives": 10 * time.Minute,
		"over":                40 * time.Second, "none": 0,
	} {
		explanation := heldMessage(t, wait, "a 1d money")
		if explanation.HeldUntil != nil || strings.Contains(explanation.Text, "others may have it") {
			t.Errorf("%s: %v %s", name, explanation.HeldUntil, explanation.Text)
		}
	}
}

// TestForecastSaysHowLongAMessageWouldBeKept: from a channel that could take it at once.
func TestForecastSaysHowLongAMessageWouldBeKept(t *testing.T) {
	t.Parallel()
	const kept = "It would be kept for a for 5 min, then others might have it."
	for _, c := range []struct {
		wait  time.Duration
		other string
		want  bool
	}{{5 * time.Minute, "", true}, {5 * time.Minute, "draining", false}, {0, "", false}} {
		doc := london(t)
		doc.Routes[0].Wait = c.wait
		answer := decide.Explanation{
			Plan: ledger.Plan{Route: "default", Draw: 17, Size: 100, FirstChoice: "a"},
			Candidates: []decide.Candidate{
				{Channel: "a", Reason: "no_active"},
				{Channel: "c", Reason: c.other},
			},
			Decision: ledger.Decision{
				State: ledger.Waiting, Reason: "no_active", WaitsFor: "a",
				NextAt: ten,
			},
		}
		if text := forecast(t, "order-1", &answer, doc).Text; strings.Contains(text,
			kept) != c.want {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

// TestAWaitForAClosedLimitIsNotShownAsOneForAFullOne: once it is over, by the version of the last
// planning.
func TestAWaitForAClosedLimitIsNotShownAsOneForAFullOne(t *testing.T) {
	t.Parallel()
	for words, limit := range map[string]admission.Limit{
		"1 min 30 s for the limit of messages per minute on a (closed: 0 at the last look) and " +
			"2.0 s for the limit of messages per second on a (no room)": minutely(admission.Scope{},
			0),
		"1 min 30 s for the limit of messages per minute on a (no room) and 2.0 s for the limit " +
			"of messages per second on a (no room)": minutely(admission.Scope{},
			5),
	} {
		doc := london(t)
		doc.Channels[0].Limits = []admission.Limit{limit}
		r := newRecord(ledger.Accepted, attempt("a", ledger.ByFirstChoice, outcomeAccepted, ""))
		r.Message.Waits = []ledger.Wait{{
			Reason: "no_slot", On: "a 1m messages",
			For: 90 * time.Second,
		}, {Reason: "no_slot", On: "a 1s messages", For: 2 * time.Second}}
		r.Attempts[0].ClaimedAt = ten.Add(92 * time.Second)
		r.Seen = encode("load_ratio", ranked("a", 0, "no_slot"))
		if explanation := explain(t, r, doc); !strings.Contains(explanation.Text,
			"It had to wait for 1 min 32 s: "+words+".") {
			t.Error(explanation.Text)
		}
	}
}

func TestSpansAreWrittenOneWay(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond: "12 ms", 16200 * time.Millisecond: "16.2 s",
		59940 * time.Millisecond: "59.9 s", 59960 * time.Millisecond: "1 min",
		5 * time.Minute: "5 min", 90 * time.Second: "1 min 30 s", time.Hour +
			5*time.Second: "1 h 5 s", 50*time.Hour + 3*time.Minute: "2 d 2 h 3 min",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
