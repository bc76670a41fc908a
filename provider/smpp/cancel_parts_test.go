package smpp

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// answerPart answers one part of every message in a way of its own.
func answerPart(number int, a smpptest.Answer) smpptest.Behaviour {
	return smpptest.Behaviour{Cancels: true, Decide: func(s smpptest.Submit) smpptest.Answer {
		if s.Part == number {
			return a
		}
		return smpptest.Answer{}
	}}
}

// TestPartsOfARejectedMessageAreTakenBack where the channel says that cancel_sm works, and those of no other message.
func TestPartsOfARejectedMessageAreTakenBack(t *testing.T) {
	t.Parallel()
	rejected := smpptest.Answer{Status: pdu.StatusInvDstAdr}
	for name, c := range map[string]struct {
		cancel    bool
		second    smpptest.Answer
		outcome   provider.Outcome
		cancelled []bool
	}{
		"rejected":                   {true, rejected, provider.Rejected, []bool{true, false, true}},
		"rejected, no cancel_sm":     {false, rejected, provider.Rejected, []bool{false, false, false}},
		"refused: it is tried again": {true, smpptest.Answer{Status: pdu.StatusSysErr}, provider.Refused, []bool{false, false, false}},
		"unknown":                    {true, smpptest.Answer{State: smpptest.Dropped}, provider.Unknown, []bool{false, false, false}},
		"accepted":                   {true, smpptest.Answer{}, provider.Accepted, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, client := startPiped(t, answerPart(2, c.second), Config{Cancel: c.cancel})
				s := submission(1)
				s.Text = longText(3)
				if r := send(client, s); r.Outcome != c.outcome {
					t.Errorf("%v (%s)", r.Outcome, r.Code)
				}
				var got []bool
				for _, one := range srv.Submits() {
					got = append(got, one.Cancelled)
				}
				if diff := cmp.Diff(c.cancelled, got); diff != "" {
					t.Error(diff)
				}
				closeIn(t, client)
				srv.Close()
			})
		})
	}
}

// answerless is a client with cancel_sm, and its peer in the hands of the test, inside of a bubble.
func answerless(t *testing.T) (*Client, *rawPeer) {
	t.Helper()
	ours, theirs := net.Pipe()
	c, err := New(Config{
		Addresses: []string{"pipe:1"}, SystemID: "acme", EnquireLink: time.Hour, Cancel: true,
		Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	peer := newRawPeer(t, theirs)
	peer.bound()
	synctest.Wait()
	return c, peer
}

// TestASilentCancelHoldsUpNothingForLong: the first that is not answered is the last.
func TestASilentCancelHoldsUpNothingForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := answerless(t)
		began := time.Now()
		done := make(chan provider.Result, 1)
		go func() {
			s := submission(1)
			s.Text = longText(3)
			done <- send(ours, s)
		}()
		for i := range 3 {
			h := theirs.expect(pdu.CommandSubmitSM)
			status := pdu.StatusOK
			if i == 2 {
				status = pdu.StatusInvDstAdr
			}
			theirs.send(status, h.Sequence, &pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "id"})
		}
		theirs.expect(pdu.CommandCancelSM)
		if r := <-done; r.Outcome != provider.Rejected || time.Since(began) != DefaultResponseTimeout {
			t.Errorf("%v after %v", r.Outcome, time.Since(began))
		}
		go leavePolitely(theirs)
		closeIn(t, ours)
	})
}
