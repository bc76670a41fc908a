package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// cutBy gives every channel an adapter that splits texts in a way of that name.
func (w *fixture) cutBy(way string) {
	for i := range w.routing.Channels {
		w.routing.Channels[i].Cut = func(text string) string { return way + " " + text }
	}
}

// restRow returns a due row. Channel c, which splits the text in that way, has accepted all its
// parts but the last.
func restRow(way string) ledger.Message {
	row := storedRow(ledger.Retry, 1)
	row.Pinned, row.PartsLeft = "c", []int{1}
	row.PartsCut = way + " " + testJob(envelope.Message{}).Message.Text
	return row
}

func TestTheRestOfATextGoesOutOnlyAsItWasCut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture)
		state  ledger.State
		reason string
	}{
		"nothing has changed": {nil, ledger.Sending, ""},
		"others cut it otherwise": {func(w *fixture) {
			w.cutBy("udh16")
			w.routing.Channels[2].Cut = wayOf("udh8")
		}, ledger.Sending, ""},
		"its route allows fewer segments now": {func(w *fixture) {
			w.routing.Routes[0].MaxSegments = 0
		}, ledger.Sending, ""},
		"its channel cuts it otherwise": {func(w *fixture) {
			w.routing.Channels[2].Cut = wayOf("udh16")
		}, ledger.Waiting, CutOtherwise},
		"its channel takes it whole only": {func(w *fixture) {
			w.routing.Channels[2].Cut = nil
		}, ledger.Waiting, CutOtherwise},
		"and fits nothing else about it": {func(w *fixture) {
			w.routing.Channels[2].Cut = nil
			w.routing.Routes[0].PriceCap = map[string]int64{"USD": 0, "EUR": 0}
		}, ledger.Waiting, CutOtherwise},
		"and has no connection": {func(w *fixture) {
			w.routing.Channels[2].Cut = nil
			w.unready[2] = "unbound"
		}, ledger.Waiting, CutOtherwise},
		"it is switched off as well": {func(w *fixture) {
			w.routing.Channels[2].Cut, w.routing.Channels[2].State = nil, Disabled
		}, ledger.Waiting, SwitchedOff},
		"the channel sends another text": {func(w *fixture) {
			w.routing.Channels[2].Segments = func(string) int { return 2 }
			w.otherText()
		}, ledger.Waiting, CutOtherwise},
		"other channels would have been free": {func(w *fixture) {
			w.routing.Channels[2].Cut = wayOf("sar")
		}, ledger.Waiting, CutOtherwise},
	} {
		for _, mode := range []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode} {
			w := inMode(t, mode, LoadRatio)
			w.cutBy("udh8")
			if tc.change != nil {
				tc.change(w)
			}
			planned, d := w.decideDue(restRow("udh8"))
			if d.State != tc.state || d.Reason != tc.reason {
				t.Errorf("%s, %s: %s %s", name, mode, d.State, d.Reason)
				continue
			}
			if d.State == ledger.Waiting {
				if !d.NextAt.Equal(noon.Add(lookForRoute)) || d.WaitsFor != "c" {
					t.Errorf("%s, %s: waits until %s for %q", name, mode, d.NextAt, d.WaitsFor)
				}
				continue
			}
			a := newAttempt(&planned, &d)
			if d.Attempt.Channel != "c" || !slices.Equal(a.Submission.Parts, []int{1}) ||
				a.Submission.Cut != planned.Row.PartsCut || a.Submission.Cut == "" {
				t.Errorf("%s, %s: %s submits %v of %q", name, mode, d.Attempt.Channel,
					a.Submission.Parts, a.Submission.Cut)
			}
		}
	}
}

func wayOf(way string) func(string) string {
	return func(text string) string { return way + " " + text }
}

// otherText makes channel c replace look-alike characters.
func (w *fixture) otherText() {
	w.routing.Routes[0].Substitute = true
	w.routing.Channels[2].Substitute = func(text string) string {
		return strings.ToUpper(text) + "!"
	}
}

func TestAMessageThatIsWholeDoesNotCareHowItIsCut(t *testing.T) {
	t.Parallel()
	w := inMode(t, Weighted, LoadRatio)
	row := storedRow(ledger.Retry, 1)
	row.Tried = []string{"a", "b"}
	for _, cut := range []func(string) string{nil, wayOf("udh8")} {
		w.routing.Channels[2].Cut = cut
		if _, d := w.decideDue(row); d.State != ledger.Sending || d.Attempt.Channel != "c" {
			t.Errorf("got %+v, want State %v and Attempt.Channel %v", d, ledger.Sending, "c")
		}
	}
}

// TestTheRestThatNobodyCanSendFailsAtItsDeadline: the reason says what it waited for, if that was
// the cause.
func TestTheRestThatNobodyCanSendFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for waited, want := range map[string]string{
		CutOtherwise: CutOtherwise, Removed: reasonExpired,
		NoSlot: reasonExpired,
	} {
		w := inMode(t, Weighted, LoadRatio)
		w.cutBy("udh16")
		row := restRow("udh8")
		row.State, row.Reason, row.ExpiresAt = ledger.Waiting, waited, noon
		if _, d := w.decideDue(row); d.State != ledger.Failed || d.Reason != want {
			t.Errorf("after %s: %s %s", waited, d.State, d.Reason)
		}
		row.ExpiresAt = noon.Add(10 * time.Second)
		if _, d := w.decideDue(row); d.State != ledger.Waiting || d.Reason != CutOtherwise ||
			d.NextAt.After(row.ExpiresAt) {
			t.Errorf("before its deadline: %+v", d)
		}
	}
}

// TestALostAttemptKeepsHowTheRestWasCut: the instance that recovers it has only the row.
func TestALostAttemptKeepsHowTheRestWasCut(t *testing.T) {
	t.Parallel()
	row := restRow("udh8")
	a := RecordedAttempt(&row, &ledger.Attempt{Number: 2, Channel: "c", Segments: 1}, &Lane{})
	s := settle(a, &provider.Result{Outcome: provider.Refused, Code: "0x00000008"}, noon)
	if s.State != ledger.Retry || s.Pinned != "c" || !slices.Equal(s.PartsLeft, []int{1}) ||
		s.PartsCut != row.PartsCut || s.PartsCut == "" {
		t.Errorf("got %+v", s)
	}
}
