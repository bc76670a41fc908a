package providertest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/provider"
)

func acceptGivesReference(t testing.TB, h Harness) {
	in, s := start(t, h, Always(Accept)), submission(1)
	r := send(t, h, in, s)
	wantOutcome(t, r, provider.Accepted)
	if r.Parts != nil {
		t.Errorf("a message of one segment has parts %v, want nil", r.Parts)
	}
	wantReference(t, r.Reference, wantLogged(t, in, s, 1))
}

// wantReference asserts that the reference is the one in the peer's only entry. Like
// every failure of the suite, its own shows no recipient.
func wantReference(t testing.TB, got string, log []Submit) {
	t.Helper()
	var given []string
	for _, s := range log {
		given = append(given, s.Reference)
	}
	if got == "" || len(given) != 1 || given[0] != got {
		t.Errorf("reference %q, the peer gave %q", got, given)
	}
}

// longReference has the peer give ids of the longest length that the ledger stores, and longer
// ones. Longer ones are not usable: an adapter that still reports the message as accepted returns
// no reference.
func longReference(t testing.TB, h Harness) {
	for extra := range 2 {
		id := strings.Repeat("8", provider.MaxReference+extra)
		in := start(t, h, func(int, Submit) Answer { return Answer{Reply: Accept, Reference: id} })
		s := submission(8)
		r := send(t, h, in, s)
		log := wantLogged(t, in, s, 1)
		switch {
		case extra == 0:
			wantOutcome(t, r, provider.Accepted)
			wantReference(t, r.Reference, log)
		case len(r.Reference) > provider.MaxReference:
			t.Errorf("a reference of %d bytes, want at most %d", len(r.Reference),
				provider.MaxReference)
		case r.Outcome != provider.Accepted:
			wantOutcome(t, r, provider.Unknown)
		}
		closeChannel(t, h, in)
	}
}

// classifies checks an answer that needs no context.
func classifies(v Reply, want provider.Outcome) func(t testing.TB, h Harness) {
	return func(t testing.TB, h Harness) {
		in, s := start(t, h, Always(v)), submission(2)
		wantOutcome(t, send(t, h, in, s), want)
		closeChannel(t, h, in)
		wantLogged(t, in, s, 1)
	}
}

func throttleIsThrottled(t testing.TB, h Harness) {
	const wait = 7 * time.Second
	in := start(t, h, func(int, Submit) Answer { return Answer{Reply: Throttle, RetryAfter: wait} })
	s := submission(3)
	r := send(t, h, in, s)
	wantOutcome(t, r, provider.Throttled)
	if h.RetryAfter && r.RetryAfter != wait {
		t.Errorf("RetryAfter %s, the peer said %s", r.RetryAfter, wait)
	}
	closeChannel(t, h, in)
	wantLogged(t, in, s, 1)
}

// lostReplyIsUnknown waits for an answer until its deadline. On a busy machine the deadline may
// pass while the message is on its way. Then the outcome is unknown too, and the peer may never
// read the message. It begins again with twice the time.
func lostReplyIsUnknown(t testing.TB, h Harness) {
	for ; ; h.Deadline = 2 * h.deadline() {
		in, s := start(t, h, Always(Lose)), submission(4)
		r := sendWithDeadline(t, h, in, s)
		wantOutcome(t, r, provider.Unknown)
		closeChannel(t, h, in)
		if r.Outcome != provider.Unknown || len(in.Submits()) > 0 || 2*h.deadline() > h.timeout() {
			wantLogged(t, in, s, 1)
			return
		}
	}
}

func cancelInFlightIsUnknown(t testing.TB, h Harness) {
	in, s := start(t, h, Always(Lose)), submission(5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := async(ctx, in, s)
	eventually(t, h, "the peer has the message", func() bool { return len(in.Submits()) > 0 })
	cancel()
	wantOutcome(t, checked(t, h, s, await(t, h, "the result after cancel", done)), provider.Unknown)
	closeChannel(t, h, in)
	wantLogged(t, in, s, 1)
}

// cutIsUnknown sends another message after the reconnect, so that a repetition of the first one
// would be in the log by then.
func cutIsUnknown(t testing.TB, h Harness) {
	in := start(t, h, func(n int, _ Submit) Answer {
		if n == 0 {
			return Answer{Reply: Cut}
		}
		return Answer{Reply: Accept}
	})
	first, second := submission(6), submission(7)
	wantOutcome(t, send(t, h, in, first), provider.Unknown)
	eventually(t, h, "a message is accepted again", func() bool {
		waitReady(t, h, in)
		r := send(t, h, in, second)
		if r.Outcome != provider.Accepted && r.Outcome != provider.Refused {
			t.Fatalf("outcome %v, want Accepted, or Refused until the channel has reconnected",
				r.Outcome)
		}
		return r.Outcome == provider.Accepted
	})
	closeChannel(t, h, in)
	wantLogged(t, in, first, 1)
	wantLogged(t, in, second, 1)
}

func downPeerIsRefused(t testing.TB, h Harness) {
	in, s := h.Start(t, nil), submission(8)
	if ok, why := in.Channel.Ready(); !h.Connectionless && (ok || why == "" || len(why) > maxCode) {
		t.Errorf("Ready = %v %q without a peer, want false and one word", ok, why)
	}
	ctx, cancel := context.WithTimeout(t.Context(), h.deadline())
	defer cancel()
	done := async(ctx, in, s)
	wantOutcome(t, checked(t, h, s, await(t, h, "the result without a peer", done)),
		provider.Refused)
	closeChannel(t, h, in)
	wantLogged(t, in, s, 0)
}

func endedContextSendsNothing(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for i, ctx := range []context.Context{cancelled, expired} {
		s := submission(10 + i)
		wantOutcome(t, sendCtx(ctx, t, h, in, s), provider.Refused)
	}
	closeChannel(t, h, in)
	if n := len(in.Submits()); n != 0 {
		t.Errorf("the peer's log has %d submits, want none", n)
	}
}

// passedLatestLeavesNoByte also sends a submission whose Latest has not passed: that one must
// leave.
func passedLatestLeavesNoByte(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	for i, latest := range []time.Time{time.Now(), time.Now().Add(-time.Hour)} {
		s := submission(12 + i)
		s.Latest = latest
		wantLate(t, send(t, h, in, s))
		wantLogged(t, in, s, 0)
	}
	s := submission(14)
	s.Latest = time.Now().Add(h.timeout())
	wantOutcome(t, send(t, h, in, s), provider.Accepted)
	closeChannel(t, h, in)
	if n := len(in.Submits()); n != 1 {
		t.Errorf("the peer's log has %d submits, want the one sent in time", n)
	}
}

// wantLate fails unless a submission was held back because of its Latest.
func wantLate(t testing.TB, r provider.Result) {
	t.Helper()
	wantCode(t, r, provider.Late)
}

// wantCode fails unless a submission was held back with that code.
func wantCode(t testing.TB, r provider.Result, code string) {
	t.Helper()
	wantOutcome(t, r, provider.Refused)
	if r.Code != code {
		t.Errorf("code %q, want %q", r.Code, code)
	}
}

// passedDeadlineLeavesNoByte also sends one whose deadline has not passed, and one that is also
// late.
func passedDeadlineLeavesNoByte(t testing.TB, h Harness) {
	in := start(t, h, Always(Accept))
	for i, deadline := range []time.Time{time.Now(), time.Now().Add(-time.Hour)} {
		s := submission(15 + i)
		s.Deadline, s.Validity, s.Latest = deadline, deadline, time.Now()
		wantCode(t, send(t, h, in, s), provider.DeadlinePassed)
		wantLogged(t, in, s, 0)
	}
	s := submission(17)
	s.Deadline = time.Now().Add(time.Hour)
	s.Validity = s.Deadline
	wantOutcome(t, send(t, h, in, s), provider.Accepted)
	closeChannel(t, h, in)
	if n := len(in.Submits()); n != 1 {
		t.Errorf("the peer's log has %d submits, want the one sent in time", n)
	}
}

// maxBefore is the largest number of submissions in flight with which the suite makes another one
// wait.
const maxBefore = 400

// waitingPastDeadlineLeavesNoByte makes a submission wait for others that get no answer until its
// deadline has passed. An adapter that does not limit concurrent submissions sends it in time.
func waitingPastDeadlineLeavesNoByte(t testing.TB, h Harness) {
	hold := make(chan struct{})
	in := start(t, h, func(int, Submit) Answer { return Answer{Reply: Accept, Hold: hold} })
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	others := make([]<-chan provider.Result, maxBefore)
	for i := range others {
		others[i] = async(ctx, in, submission(100+i))
	}
	full := len(in.Submits())
	for settled := 0; settled < 3; settled++ { // nothing has arrived for a while
		<-time.After(pause)
		if n := len(in.Submits()); n != full {
			full, settled = n, 0
		}
	}
	s := submission(18)
	s.Deadline = time.Now().Add(3 * pause)
	s.Validity = time.Now().Add(time.Hour)
	done := async(ctx, in, s)
	early := leftBefore(in, s, done)
	close(hold)
	r := checked(t, h, s, await(t, h, "the result", done))
	for _, other := range others {
		await(t, h, "the result of another", other)
	}
	closeChannel(t, h, in)
	wantLogged(t, in, s, early)
	if early == 0 {
		wantCode(t, r, provider.DeadlinePassed)
	}
}

// leftBefore waits until the deadline has passed and the peer has read everything that left before,
// which takes a while on a busy machine. It returns how often the submission left. It ends early
// once the submission has left or has a result.
func leftBefore(in Instance, s provider.Submission, done <-chan provider.Result) int {
	limit := time.After(time.Until(s.Deadline) + 30*pause)
	tick := time.NewTicker(pause / 10)
	defer tick.Stop()
	for len(done) == 0 && len(logged(in, s.To)) == 0 {
		select {
		case <-tick.C:
		case <-limit:
			return 0
		}
	}
	return len(logged(in, s.To))
}

func concurrentSends(t testing.TB, h Harness) {
	const n = 100
	in := start(t, h, Always(Accept))
	results := make([]provider.Result, n)
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = in.Channel.Send(ctx, submission(i)) })
	}
	wg.Wait()
	closeChannel(t, h, in)
	owner := make(map[string]int, n)
	for i, r := range results {
		s := submission(i)
		wantOutcome(t, checked(t, h, s, r), provider.Accepted)
		wantReference(t, r.Reference, wantLogged(t, in, s, 1))
		if other, taken := owner[r.Reference]; taken {
			t.Errorf("messages %d and %d have the same reference", other, i)
		}
		owner[r.Reference] = i
	}
	if got := len(in.Submits()); got != n {
		t.Errorf("the peer's log has %d submits, want %d", got, n)
	}
}

// lateAnswer gives the first message's answer after its sender has left, while the
// second message waits for its own.
func lateAnswer(t testing.TB, h Harness) {
	holds := []chan struct{}{make(chan struct{}), make(chan struct{})}
	in := start(t, h, func(n int, _ Submit) Answer {
		if n < len(holds) {
			return Answer{Reply: Accept, Hold: holds[n]}
		}
		return Answer{Reply: Accept}
	})
	first, second, third := submission(20), submission(21), submission(22)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	firstDone := async(ctx, in, first)
	eventually(t, h, "the peer has the first message",
		func() bool { return len(in.Submits()) == 1 })
	leave()
	wantOutcome(t, checked(t, h, first, await(t, h, "the first result", firstDone)),
		provider.Unknown)

	long, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	secondDone := async(long, in, second)
	eventually(t, h, "the peer has the second message",
		func() bool { return len(in.Submits()) == 2 })
	close(holds[0])
	thirdResult := send(t, h, in, third) // overtakes the second
	close(holds[1])
	secondResult := checked(t, h, second, await(t, h, "the second result", secondDone))
	wantOutcome(t, secondResult, provider.Accepted)
	wantOutcome(t, thirdResult, provider.Accepted)
	wantReference(t, secondResult.Reference, wantLogged(t, in, second, 1))
	wantReference(t, thirdResult.Reference, wantLogged(t, in, third, 1))
	closeChannel(t, h, in)
	wantLogged(t, in, first, 1)
}
