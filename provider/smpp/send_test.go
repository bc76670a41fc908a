package smpp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/provider/sms"
)

// sendMany sends messages 0 to n-1 from that many goroutines and returns the results.
func sendMany(c *Client, n, senders int) []provider.Result {
	results := make([]provider.Result, n)
	var wg sync.WaitGroup
	for k := range senders {
		wg.Go(func() {
			for i := k; i < n; i += senders {
				results[i] = send(c, submission(i))
			}
		})
	}
	wg.Wait()
	return results
}

func tally(results []provider.Result) map[provider.Outcome]int {
	counts := make(map[provider.Outcome]int)
	for _, r := range results {
		counts[r.Outcome]++
	}
	return counts
}

// inLog returns the server's entries by destination.
func inLog(srv *smpptest.Server) map[string][]smpptest.Submit {
	entries := make(map[string][]smpptest.Submit)
	for _, s := range srv.Submits() {
		entries["+"+s.To] = append(entries["+"+s.To], s)
	}
	return entries
}

// wantSentAtMostOnce compares the results with the peer's log: an accepted message is there once, a
// message refused without an answer never, and no message twice.
func wantSentAtMostOnce(t *testing.T, srv *smpptest.Server, results []provider.Result) {
	t.Helper()
	entries := inLog(srv)
	for i, r := range results {
		n := len(entries[submission(i).To])
		switch {
		case n > 1:
			t.Errorf("message %d was written %d times", i, n)
		case r.Outcome == provider.Accepted && n != 1:
			t.Errorf("message %d is accepted but was never written", i)
		case r.Outcome == provider.Refused && !hasStatus(r) && n != 0:
			t.Errorf("message %d is refused (%s) but was written", i, r.Code)
		}
	}
}

// hasStatus reports whether the SMSC itself answered.
func hasStatus(r provider.Result) bool {
	_, answered := errors.AsType[*StatusError](r.Err)
	return answered
}

func TestAnswersThatOvertakeEachOtherReachTheirSender(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{
		Log: -1, Behaviour: smpptest.Behaviour{
			Latency: time.Millisecond, Jitter: 20 * time.Millisecond,
		},
	})
	c := startClient(t, fastConfig(srv.Addr()))
	results := sendMany(c, 200, 50)
	entries := inLog(srv)
	for i, r := range results {
		if log := entries[submission(i).To]; r.Outcome != provider.Accepted || len(log) != 1 ||
			log[0].MessageID != r.Reference {
			t.Errorf("message %d: %+v, log %+v", i, r, log)
		}
	}
}

func TestThrottledAndFailedSubmitsSaySo(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{
		Log: -1, Behaviour: smpptest.Behaviour{ErrorEvery: 3, ErrorStatus: pdu.StatusInvDstAdr},
	})
	c := startClient(t, fastConfig(srv.Addr()))
	results := sendMany(c, 30, 5)
	if counts := tally(results); counts[provider.Rejected] != 10 ||
		counts[provider.Accepted] != 20 {
		t.Errorf("outcomes %v", counts)
	}
	srv.SetBehaviour(smpptest.Behaviour{Throttle: true})
	r := send(c, submission(99))
	status, _ := errors.AsType[*StatusError](r.Err)
	if r.Outcome != provider.Throttled || r.Code != "0x00000058" || status == nil ||
		status.Status != pdu.StatusThrottled {
		t.Errorf("throttled: %+v", r)
	}
	wantSentAtMostOnce(t, srv, results)
}

func TestDroppedRepliesAreUnknownAfterTheResponseTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{DropEvery: 2},
			Config{Window: 4, ResponseTimeout: 3 * time.Second})
		began := time.Now()
		results := sendMany(c, 20, 10)
		if counts := tally(results); counts[provider.Unknown] != 10 ||
			counts[provider.Accepted] != 10 {
			t.Errorf("outcomes %v", counts)
		}
		for i, r := range results {
			if r.Outcome == provider.Unknown && r.Code != "timeout" {
				t.Errorf("message %d: code %q", i, r.Code)
			}
		}
		// Ten lost answers in a window of four take three response timeouts.
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("took %v, want 9s", took)
		}
		wantSentAtMostOnce(t, srv, results)
		closeIn(t, c)
		srv.Close()
	})
}

// startPiped starts both ends inside a synctest bubble.
func startPiped(
	t *testing.T, behaviour smpptest.Behaviour, cfg Config,
) (*smpptest.Server, *Client) {
	t.Helper()
	srv := smpptest.New(smpptest.Config{Log: -1, Behaviour: behaviour})
	cfg.Addresses, cfg.SystemID, cfg.Dial = []string{"pipe:1"}, "acme", pipeTo(srv)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if ok, why := c.Ready(); !ok {
		t.Fatalf("not ready: %s", why)
	}
	return srv, c
}

// TestACutConnectionKeepsCertainOutcomes cuts connections repeatedly under load. Nothing is written
// twice, and Refused submits were not written.
func TestACutConnectionKeepsCertainOutcomes(t *testing.T) {
	t.Parallel()
	rounds, n := tier.Size(3, 10), 400
	for _, encrypted := range []bool{false, true} {
		for range rounds {
			checkCut(t, n, encrypted)
		}
	}
}

func checkCut(t *testing.T, n int, encrypted bool) {
	t.Helper()
	serverConfig := smpptest.Config{
		Log: -1, Behaviour: smpptest.Behaviour{CutAfter: n / 3, Latency: time.Millisecond},
	}
	window := 50
	cfg := Config{}
	if encrypted {
		serverConfig.TLS, cfg.TLS = tlsPair(t)
	}
	srv := startServer(t, serverConfig)
	fast := fastConfig(srv.Addr())
	fast.TLS, fast.Window, fast.ResponseTimeout = cfg.TLS, window, testTimeout
	c := startClient(t, fast)
	results := sendMany(c, n, 100)
	wantSentAtMostOnce(t, srv, results)
	counts := tally(results)
	if unknown := counts[provider.Unknown]; unknown == 0 || unknown > window {
		t.Errorf("%d submits are Unknown, want 1 to the window of %d", unknown, window)
	}
	if counts[provider.Rejected]+counts[provider.Throttled] != 0 {
		t.Errorf("outcomes %v", counts)
	}
	written, decided := len(srv.Submits()), counts[provider.Accepted]+counts[provider.Unknown]
	if written > decided {
		t.Errorf("%d submits were written, only %d are accepted or unknown", written, decided)
	}
}

func TestFullWindowBlocksUntilASlotIsFree(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: holding(hold)})
	cfg := fastConfig(srv.Addr())
	cfg.Window = 2
	c := startClient(t, cfg)
	first := make(chan []provider.Result, 1)
	go func() { first <- sendMany(c, 2, 2) }()
	tier.Eventually(t, "the window is full", func() bool { return len(srv.Submits()) == 2 })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	third := make(chan provider.Result, 1)
	go func() { third <- c.Send(ctx, submission(2)) }()
	tier.Eventually(t, "the third waits", func() bool { return c.pool.waits() == 1 })
	cancel()
	if r := <-third; r.Outcome != provider.Refused || r.Code != "window_full" {
		t.Errorf("third message: %+v", r)
	}
	fourth := make(chan provider.Result, 1)
	go func() { fourth <- send(c, submission(3)) }()
	tier.Eventually(t, "the fourth waits", func() bool { return c.pool.waits() == 1 })
	if n := len(srv.Submits()); n != 2 {
		t.Errorf("%d submits got through a window of 2", n)
	}
	close(hold)
	if r := <-fourth; r.Outcome != provider.Accepted {
		t.Errorf("fourth message: %+v", r)
	}
	wantSentAtMostOnce(t, srv, <-first)
	if len(inLog(srv)[submission(2).To]) != 0 {
		t.Error("the refused third message was written")
	}
}

// holding answers when hold is closed.
func holding(hold <-chan struct{}) smpptest.Behaviour {
	return smpptest.Behaviour{
		Decide: func(smpptest.Submit) smpptest.Answer { return smpptest.Answer{Hold: hold} },
	}
}

// waits counts the waiting senders.
func (p *pool) waits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len()
}

func TestEnquireLinkBypassesAFullWindow(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: holding(hold)})
	cfg := fastConfig(srv.Addr())
	cfg.Window, cfg.EnquireLink, cfg.ResponseTimeout = 1, 10*time.Millisecond, testTimeout
	c := startClient(t, cfg)
	results := make(chan []provider.Result, 1)
	go func() { results <- sendMany(c, 3, 3) }()
	tier.Eventually(t, "enquire_links pass the full window", func() bool {
		return len(srv.Submits()) == 1 && srv.Stats().EnquireLinks > 5
	})
	close(hold)
	if counts := tally(<-results); counts[provider.Accepted] != 3 {
		t.Errorf("outcomes %v", counts)
	}
	if binds := srv.Stats().Binds; binds != 1 {
		t.Errorf("%d binds, want the first to have lasted", binds)
	}
}

func TestAWindowOfOneCarriesAMessageOfManyParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{DropEvery: 3}, Config{Window: 1})
		s := submission(1)
		s.Text, s.Reference = longText(5), 7
		r := send(c, s)
		want := []provider.Outcome{
			provider.Accepted, provider.Accepted, provider.Unknown, provider.Refused,
			provider.Refused,
		}
		if r.Outcome != provider.Unknown || len(r.Parts) != len(want) {
			t.Fatalf("result %+v", r)
		}
		for i, p := range r.Parts {
			if p.Outcome != want[i] {
				t.Errorf("part %d is %v (%s), want %v", i, p.Outcome, p.Code, want[i])
			}
		}
		if n := len(srv.Submits()); n != 3 {
			t.Errorf("%d parts were written after the third had failed, want 3", n)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestNothingFollowsAPartThatIsKnownToHaveFailed uses a window of one: the answer to each part
// arrives before the next part can leave.
func TestNothingFollowsAPartThatIsKnownToHaveFailed(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{
		Log: -1, Behaviour: smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: pdu.StatusInvDstAdr},
	})
	cfg := fastConfig(srv.Addr())
	cfg.Window, cfg.ResponseTimeout = 1, testTimeout
	c := startClient(t, cfg)
	n := tier.Size(100, 300)
	for i := range n {
		s := submission(i)
		s.Text = longText(2)
		if r := send(c, s); r.Outcome != provider.Rejected ||
			r.Parts[1].Outcome != provider.Refused {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	if written := len(srv.Submits()); written != n {
		t.Errorf("%d parts of %d messages were written, want the first of each", written, n)
	}
}

func TestMessagesThatCannotBeEncodedSendNothing(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1})
	c := startClient(t, fastConfig(srv.Addr()))
	for code, change := range map[string]func(*provider.Submission){
		"destination": func(s *provider.Submission) { s.To = "nobody" },
		"too_long":    func(s *provider.Submission) { s.Text = longText(256) },
		"parts": func(s *provider.Submission) {
			s.Parts, s.Cut = []int{4}, (&Config{}).Cut(s.Text)
		},
	} {
		s := submission(1)
		change(&s)
		if r := send(c, s); r.Outcome != provider.Rejected || r.Code != code || r.Err == nil {
			t.Errorf("%s: %+v", code, r)
		}
	}
	if n := len(srv.Submits()); n != 0 {
		t.Errorf("%d submits were written", n)
	}
}

// TestWhatAnotherChannelMayWriteIsRefused: the message is not at fault and falls back. The refusal
// does not count for this channel's health.
func TestWhatAnotherChannelMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1})
	cfg := fastConfig(srv.Addr())
	cfg.Schedule = time.Hour
	c := startClient(t, cfg)
	for word, change := range map[string]func(*provider.Submission){
		"source": func(s *provider.Submission) { s.From = "way too long a sender" },
		// it expires before its scheduled time
		"expired": func(s *provider.Submission) { s.Validity = time.Now().Add(time.Minute) },
	} {
		s := submission(1)
		change(&s)
		r := send(c, s)
		if r.Outcome != provider.Refused || r.Code != provider.Uncomposed || r.Err == nil ||
			!strings.Contains(r.Err.Error(), word) {
			t.Errorf("%s: %+v", word, r)
		}
	}
	if n := len(srv.Submits()); n != 0 {
		t.Errorf("%d submits were written", n)
	}
}

// TestAnUnansweredTextInOnePDUOwesOneReceipt also on a channel that sends some texts in parts.
func TestAnUnansweredTextInOnePDUOwesOneReceipt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: time.Hour}, Config{
			ResponseTimeout: time.Second, LongMessages: MessagePayload,
			Tables: sms.Tables{Single: sms.LanguagesOf(sms.Turkish)},
		})
		s := submission(1)
		s.Text = longText(3)
		r := c.Send(t.Context(), s)
		if r.Outcome != provider.Unknown || r.Parts != nil || r.Receipts != 1 {
			t.Errorf("result %+v", r)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// longText returns a text of exactly that many segments with an 8-bit reference.
func longText(segments int) string {
	text := make([]byte, 153*segments)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return string(text)
}
