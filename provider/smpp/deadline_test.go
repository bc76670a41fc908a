package smpp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestNothingWaitsForAWindowPastItsDeadline: the only slot is taken, and comes free after the deadline.
func TestNothingWaitsForAWindowPastItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: 5 * time.Second}, Config{Window: 1})
		first := sendAsync(c, submission(1))
		synctest.Wait()
		s, began := submission(2), time.Now()
		s.Deadline, s.Latest = began.Add(time.Second), began.Add(2*time.Second)
		if r := send(c, s); r.Outcome != provider.Refused || r.Code != provider.DeadlinePassed || time.Since(began) != time.Second {
			t.Errorf("%v (%s) after %s", r.Outcome, r.Code, time.Since(began))
		}
		s.Deadline, s.Latest = time.Now().Add(2*time.Second), time.Now().Add(time.Second)
		if r := send(c, s); r.Code != provider.Late {
			t.Errorf("its latest moment came first, and the code is %s", r.Code)
		}
		if r := <-first; r.Outcome != provider.Accepted {
			t.Errorf("the one before: %v (%s)", r.Outcome, r.Code)
		}
		closeIn(t, c)
		srv.Close()
		if n := len(srv.Submits()); n != 1 {
			t.Errorf("the SMSC read %d submits", n)
		}
	})
}

// TestTheRestOfAMessageDoesNotLeavePastItsDeadline: five parts, a window of two, and an SMSC that takes a second for each
// answer. What was accepted before counts.
func TestTheRestOfAMessageDoesNotLeavePastItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{Latency: time.Second}, Config{Window: 2})
		began := time.Now()
		s := submission(1)
		s.Text, s.Reference, s.Deadline = longText(5), 7, began.Add(1500*time.Millisecond)
		r := send(c, s)
		if r.Outcome != provider.Refused || r.Code != provider.DeadlinePassed {
			t.Errorf("%v (%s)", r.Outcome, r.Code)
		}
		var codes []string
		for _, part := range r.Parts {
			codes = append(codes, part.Outcome.String()+" "+part.Code)
		}
		want := []string{"accepted 0x00000000", "accepted 0x00000000", "accepted 0x00000000", "refused expired", "refused expired"}
		if diff := cmp.Diff(want, codes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int{"0s, messages: 1": 2, "1s, messages: 1": 1}, arrivals(srv, began)); diff != "" {
			t.Error(diff)
		}
		closeIn(t, c)
		srv.Close()
	})
}

// TestTheLastLookAtADeadlineIsRightBeforeTheWrite, also of a message that has begun: it is not bounded by its latest
// moment any more, but by its deadline.
func TestTheLastLookAtADeadlineIsRightBeforeTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queueing(t)
		calls := s.queued(t, time.Now().Add(time.Hour), 3, writeSize/2)
		for _, c := range calls {
			c.expires = time.Now().Add(time.Second)
		}
		if buf, _, _ := s.take(nil, nil); len(buf) != writeSize {
			t.Fatalf("%d octets are written", len(buf))
		}
		<-time.After(time.Second)
		if buf, spans, _ := s.take(nil, nil); len(buf) != 0 || len(spans) != 0 || len(s.queue) != 0 {
			t.Errorf("%d octets are written, %d calls stay", len(buf), len(s.queue))
		}
		if <-calls[2].done; calls[2].outcome != unsent || calls[2].why != provider.DeadlinePassed {
			t.Errorf("the rest: %v %q", calls[2].outcome, calls[2].why)
		}
	})
}

// TestASpanOfValidityIsCountedFromTheWrite: the message waits for three of its ten seconds, and this machine's wall clock
// differs from the database's by an hour.
func TestASpanOfValidityIsCountedFromTheWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"relative":           {Config{ValidityFormat: Relative}, "000000000007000R"},
		"relative, bounded":  {Config{ValidityFormat: Relative, LongestValidity: 5 * time.Second}, "000000000005000R"},
		"absolute":           {Config{}, ""}, // the database's point in time
		"with a service":     {Config{ValidityFormat: Relative, ServiceType: "CMT"}, "000000000007000R"},
		"with a sender type": {Config{ValidityFormat: Relative, From: "ACME"}, "000000000007000R"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.cfg.Window = 1
				srv, c := startPiped(t, smpptest.Behaviour{Latency: 3 * time.Second}, tc.cfg)
				first := sendAsync(c, submission(1))
				synctest.Wait()
				s := submission(2)
				s.Deadline = time.Now().Add(10 * time.Second)
				s.Validity = s.Deadline.Add(time.Hour)
				if r := send(c, s); r.Outcome != provider.Accepted {
					t.Fatalf("%v (%s)", r.Outcome, r.Code)
				}
				<-first
				closeIn(t, c)
				srv.Close()
				want := tc.want
				if want == "" {
					want = pdu.FormatTime(s.Validity)
				}
				if got := srv.Submits()[1].Validity; got != want {
					t.Errorf("validity_period %q, want %q", got, want)
				}
			})
		})
	}
}
