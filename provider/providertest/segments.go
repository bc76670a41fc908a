package providertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/sms"
)

// longSubmission is a message of three segments under either width of reference.
func longSubmission(i int) (s provider.Submission, parts int) {
	s = submission(i)
	s.Text += strings.Repeat(" and so on", 38)
	return s, len(sms.Split(s.Text, sms.Reference8).Segments)
}

func segmentsAreSentOnce(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	s, parts := longSubmission(40)
	r := send(t, h, in, s)
	wantOutcome(t, r, provider.Accepted)
	log := wantLogged(t, in, s, parts)
	if len(r.Parts) != parts {
		t.Fatalf("%d parts in the result, want %d", len(r.Parts), parts)
	}
	for i, p := range r.Parts {
		if p.Index != i || p.Outcome != provider.Accepted {
			t.Errorf("entry %d is part %d, %v; want accepted part %d", i, p.Index, p.Outcome, i)
		}
		wantReference(t, p.Reference, ofPart(log, i))
	}
	wantGroup(t, log, s.Reference)
}

// ofPart returns the entries of one segment.
func ofPart(log []Submit, part int) []Submit {
	var out []Submit
	for _, s := range log {
		if s.Part == part {
			out = append(out, s)
		}
	}
	return out
}

// wantGroup asserts that every segment carries the submission's reference, of which a
// protocol may have only the low byte.
func wantGroup(t testing.TB, log []Submit, want uint16) {
	t.Helper()
	for _, s := range log {
		if s.Group != want && s.Group != want&0xFF {
			t.Errorf("part %d carries concatenation reference %#x, want %#x", s.Part, s.Group, want)
		}
	}
}

// missingPartsOnly throttles the middle part once and sends the missing parts again: in the end the
// peer has accepted each part exactly once.
func missingPartsOnly(t testing.TB, h Harness) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	in := start(t, h, func(_ int, s Submit) Answer {
		if s.Part != 1 {
			return Answer{Reply: Accept}
		}
		select {
		case <-first:
			return Answer{Reply: Throttle}
		default:
			return Answer{Reply: Accept}
		}
	})
	s, parts := longSubmission(41)
	r := send(t, h, in, s)
	wantOutcome(t, r, provider.Throttled)
	missing := missingParts(r, parts)
	if len(missing) == 0 || missing[0] != 1 {
		t.Fatalf("missing parts %v, want them to begin with part 1", missing)
	}
	if r.Cut == "" {
		t.Error("the result has no Cut")
	}
	s.Attempt, s.Parts, s.Cut = 2, missing, r.Cut
	again := send(t, h, in, s)
	wantOutcome(t, again, provider.Accepted)
	closeChannel(t, h, in)

	log := logged(in, s.To)
	for part := range parts {
		if n := acceptedTimes(ofPart(log, part)); n != 1 {
			t.Errorf("the peer accepted part %d %d times, want once", part, n)
		}
	}
	if len(again.Parts) != len(missing) {
		t.Errorf("the second result has %d parts, want the %d that were missing", len(again.Parts),
			len(missing))
	}
	for _, p := range again.Parts {
		if p.Outcome == provider.Accepted && p.Reference == "" {
			t.Errorf("part %d was accepted without a reference", p.Index)
		}
	}
	wantGroup(t, log, s.Reference)
}

// foreignCutIsRefused requests a part of a text that was split in a way unknown to the adapter. Its
// own part of that number may hold other words.
func foreignCutIsRefused(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	s, _ := longSubmission(45)
	s.Attempt, s.Parts = 2, []int{1}
	for _, cut := range []string{"", "another cut"} {
		s.Cut = cut
		r := send(t, h, in, s)
		wantOutcome(t, r, provider.Refused)
		if r.Code != provider.Uncomposed {
			t.Errorf("cut %q: code %q, want %q", cut, r.Code, provider.Uncomposed)
		}
	}
	closeChannel(t, h, in)
	wantLogged(t, in, s, 0)
}

// missingParts lists, ascending, the parts that the result does not report as accepted.
func missingParts(r provider.Result, parts int) []int {
	accepted := make([]bool, parts)
	for _, p := range r.Parts {
		if p.Index >= 0 && p.Index < parts {
			accepted[p.Index] = p.Outcome == provider.Accepted
		}
	}
	var missing []int
	for i, ok := range accepted {
		if !ok {
			missing = append(missing, i)
		}
	}
	return missing
}

func acceptedTimes(log []Submit) int {
	n := 0
	for _, s := range log {
		if s.Reference != "" {
			n++
		}
	}
	return n
}

func passedLatestLeavesNoSegment(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	s, _ := longSubmission(43)
	s.Latest = time.Now()
	wantLate(t, send(t, h, in, s))
	closeChannel(t, h, in)
	wantLogged(t, in, s, 0)
}

func passedDeadlineLeavesNoSegment(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	s, _ := longSubmission(45)
	s.Deadline = time.Now()
	wantCode(t, send(t, h, in, s), provider.DeadlinePassed)
	closeChannel(t, h, in)
	wantLogged(t, in, s, 0)
}

// begunMessageIsFinished answers the first segment after the message's latest time, which does not
// bound the other segments.
func begunMessageIsFinished(t testing.TB, h Harness) {
	hold := make(chan struct{})
	in := start(t, h, func(int, Submit) Answer { return Answer{Reply: Accept, Hold: hold} })
	s, parts := longSubmission(44)
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	var done <-chan provider.Result
	for within := h.deadline(); ; within *= 2 { // on a busy machine it may be too late at first
		s.Latest = time.Now().Add(within)
		done = async(ctx, in, s)
		eventually(t, h, "the peer has a segment", func() bool {
			return len(in.Submits()) > 0 || len(done) > 0
		})
		if len(in.Submits()) > 0 || 2*within > h.timeout() {
			break
		}
	}
	<-time.After(time.Until(s.Latest) + pause)
	close(hold)
	wantOutcome(t, checked(t, h, s, await(t, h, "the result", done)), provider.Accepted)
	wantLogged(t, in, s, parts)
}

// lostPartIsUnknown waits for the answer of a part until its deadline. On a busy machine it may
// pass before the answer to the part before. Then it begins again with twice the time.
func lostPartIsUnknown(t testing.TB, h Harness) {
	var in Instance
	var r provider.Result
	s, parts := longSubmission(42)
	for ; ; h.Deadline = 2 * h.deadline() {
		in = start(t, h, func(_ int, s Submit) Answer {
			if s.Part == 1 {
				return Answer{Reply: Lose}
			}
			return Answer{Reply: Accept}
		})
		r = sendWithDeadline(t, h, in, s)
		closeChannel(t, h, in)
		if len(r.Parts) == 0 || r.Parts[0].Outcome != provider.Unknown ||
			2*h.deadline() > h.timeout() {
			break
		}
	}
	wantOutcome(t, r, provider.Unknown)
	for part := range parts {
		if n := len(ofPart(logged(in, s.To), part)); n > 1 {
			t.Errorf("the peer's log has part %d %d times, want at most once", part, n)
		}
	}
	for _, p := range r.Parts {
		switch {
		case p.Index == 1 && p.Outcome != provider.Unknown:
			t.Errorf("part 1 is %v, want Unknown", p.Outcome)
		case p.Index == 0 && p.Outcome != provider.Accepted:
			t.Errorf("part 0 is %v, want Accepted", p.Outcome)
		}
	}
	if len(r.Parts) == 0 {
		t.Error("the result does not say which parts were accepted")
	}
}
