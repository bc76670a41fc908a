package providertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
)

// pause is how long the suite waits to see that nothing happens.
const pause = 100 * time.Millisecond

// timeout is how long the suite waits for an event that must happen.
func (h Harness) timeout() time.Duration {
	if h.Timeout > 0 {
		return h.Timeout
	}
	return 90 * time.Second
}

// deadline is how long the suite lets a channel wait for an answer that never comes.
func (h Harness) deadline() time.Duration {
	if h.Deadline > 0 {
		return h.Deadline
	}
	return time.Second
}

// canary is in every text, so that the suite finds a leak into an error.
const canary = "canary 4711"

// submission makes message number i. Each has its own recipient, from the numbers that Ofcom
// reserves for drama.
func submission(i int) provider.Submission {
	return provider.Submission{
		ID:        fmt.Sprintf("message-%d", i),
		Attempt:   1,
		To:        fmt.Sprintf("+447700900%03d", i),
		From:      "ACME",
		Text:      fmt.Sprintf("%s of message %d", canary, i),
		Reference: uint16(0x1200 + i%256),
	}
}

// start starts a channel and waits until it is ready.
func start(t testing.TB, h Harness, script Script) Instance {
	t.Helper()
	in := h.Start(t, script)
	waitReady(t, h, in)
	return in
}

func waitReady(t testing.TB, h Harness, in Instance) {
	t.Helper()
	eventually(t, h, "the channel is ready", func() bool {
		ok, why := in.Channel.Ready()
		if ok == (why != "") {
			t.Errorf("Ready = %v with reason %q, want a reason if and only if it is false", ok, why)
		}
		return ok
	})
}

// eventually polls until the condition holds.
func eventually(t testing.TB, h Harness, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(h.timeout())
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %s without success until %s", h.timeout(), what)
		}
	}
}

// send sends with a long timeout and checks what holds for every result.
func send(t testing.TB, h Harness, in Instance, s provider.Submission) provider.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	return sendCtx(ctx, t, h, in, s)
}

// sendCtx sends and checks what holds for every result.
func sendCtx(
	ctx context.Context, t testing.TB, h Harness, in Instance, s provider.Submission,
) provider.Result {
	t.Helper()
	return checked(t, h, s, in.Channel.Send(ctx, s))
}

// async sends in a goroutine; the channel gets the result once.
func async(ctx context.Context, in Instance, s provider.Submission) <-chan provider.Result {
	done := make(chan provider.Result, 1)
	go func() { done <- in.Channel.Send(ctx, s) }()
	return done
}

// sendWithDeadline sends with a deadline that comes after the message has left. On a busy machine
// it may come before that: then nothing was submitted, and it sends again with twice the time.
func sendWithDeadline(
	t testing.TB, h Harness, in Instance, s provider.Submission,
) provider.Result {
	t.Helper()
	for deadline := h.deadline(); ; deadline *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		r := checked(t, h, s, await(t, h, "the result after the deadline", async(ctx, in, s)))
		cancel()
		if r.Outcome != provider.Refused || 2*deadline > h.timeout() {
			return r
		}
	}
}

// await receives with a timeout.
func await[T any](t testing.TB, h Harness, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(h.timeout()):
		t.Fatalf("waited %s without success for %s", h.timeout(), what)
		panic("unreachable")
	}
}

// checked checks what holds for every result.
func checked(t testing.TB, h Harness, s provider.Submission, r provider.Result) provider.Result {
	t.Helper()
	if accepted := r.Outcome == provider.Accepted; accepted != (r.Err == nil) {
		t.Errorf("outcome %v with error %v: an error explains anything but Accepted", r.Outcome,
			r.Err)
	}
	if r.Outcome != provider.Accepted && r.Code == "" {
		t.Errorf("outcome %v has no code", r.Outcome)
	}
	if len(r.Parts) > 0 && provider.Combine(r.Parts) != r.Outcome {
		t.Errorf("outcome %v, but its parts combine to %v", r.Outcome, provider.Combine(r.Parts))
	}
	for i, p := range r.Parts {
		if i > 0 && p.Index <= r.Parts[i-1].Index {
			t.Errorf("part %d follows part %d, want ascending order", p.Index, r.Parts[i-1].Index)
		}
		checkCode(t, h, s, p.Code)
	}
	checkCode(t, h, s, r.Code)
	if r.Err != nil {
		checkLeak(t, h, s, "error", r.Err.Error())
	}
	return r
}

// maxCode bounds a code, which becomes a label and a column.
const maxCode = 64

func checkCode(t testing.TB, h Harness, s provider.Submission, code string) {
	t.Helper()
	if len(code) > maxCode {
		t.Errorf("code of %d bytes, want at most %d", len(code), maxCode)
	}
	checkLeak(t, h, s, "code", code)
}

// checkLeak searches a text for the recipient, the message text and the secrets. It says what
// leaked and never shows it.
func checkLeak(t testing.TB, h Harness, s provider.Submission, where, text string) {
	t.Helper()
	if strings.Contains(text, strings.TrimPrefix(s.To, "+")[3:]) {
		t.Errorf("the %s shows the recipient", where)
	}
	if strings.Contains(text, canary) {
		t.Errorf("the %s shows the message text", where)
	}
	for i, secret := range h.Secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("the %s shows secret %d", where, i)
		}
	}
}

// closeChannel closes with a long timeout.
func closeChannel(t testing.TB, h Harness, in Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	if err := in.Channel.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// logged returns the peer's entries for one recipient.
func logged(in Instance, to string) []Submit {
	var out []Submit
	for _, s := range in.Submits() {
		if s.To == to {
			out = append(out, s)
		}
	}
	return out
}

// wantLogged fails unless a message reached the peer n times.
func wantLogged(t testing.TB, in Instance, s provider.Submission, n int) []Submit {
	t.Helper()
	got := logged(in, s.To)
	if len(got) != n {
		t.Errorf("the peer's log has message %s %d times, want %d", s.ID, len(got), n)
	}
	return got
}

// wantOutcome fails unless the outcome is the wanted one.
func wantOutcome(t testing.TB, r provider.Result, want provider.Outcome) {
	t.Helper()
	if r.Outcome != want {
		t.Errorf("outcome %v (code %q, error %v), want %v", r.Outcome, r.Code, r.Err, want)
	}
}
