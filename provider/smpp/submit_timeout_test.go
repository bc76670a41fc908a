package smpp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// hurried is the DISPATCHER_SEND_TIMEOUT of these tests: submits have four fifths of it, and everything else the default.
const hurried = time.Second

// slowPeer is an SMSC that takes its time, for each kind of request its own. It answers nothing else.
type slowPeer struct {
	takes   map[pdu.Command]time.Duration
	dribble time.Duration // between two octets of an answer
	deaf    time.Duration // reads nothing for so long, once the bind has been up for deafAt
	deafAt  time.Duration

	dials atomic.Int32
	conns sync.WaitGroup
}

// dial is Config.Dial.
func (p *slowPeer) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.dials.Add(1)
	p.conns.Go(func() { p.serve(theirs) })
	return ours, nil
}

// serve reads until the connection is over.
func (p *slowPeer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader, began := pdu.NewReader(conn), time.Now()
	for {
		h, _, err := reader.Next()
		if err != nil {
			return
		}
		if takes, ok := p.takes[h.Command]; ok {
			p.conns.Go(func() {
				<-time.After(takes)
				p.answer(conn, h)
			})
		}
		if p.deaf > 0 && h.Command == pdu.CommandBindTransceiver {
			<-time.After(time.Until(began.Add(p.deafAt + p.deaf)))
		}
	}
}

// answer ignores that nobody may want it any more.
func (p *slowPeer) answer(conn net.Conn, h pdu.Header) {
	frame := pdu.AppendEmpty(nil, h.Command.Response(), pdu.StatusOK, h.Sequence)
	if h.Command == pdu.CommandQuerySM {
		frame, _ = pdu.Append(nil, pdu.StatusOK, h.Sequence, &pdu.QuerySMResp{MessageID: "7F", MessageState: pdu.ParseState("DELIVRD")})
	}
	if p.dribble == 0 {
		_, _ = conn.Write(frame)
		return
	}
	for i := range frame {
		<-time.After(p.dribble)
		_, _ = conn.Write(frame[i : i+1])
	}
}

// hurry returns a client of that peer whose senders wait for a second.
func hurry(t *testing.T, p *slowPeer) *Client {
	t.Helper()
	c, err := New(Config{Addresses: []string{"slow:1"}, SystemID: "acme", Dial: p.dial, SendTimeout: hurried, Query: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAShortSendTimeoutLeavesEverythingButSubmitsItsTime: of an SMSC that takes two seconds for something the bind stays up.
func TestAShortSendTimeoutLeavesEverythingButSubmitsItsTime(t *testing.T) {
	t.Parallel()
	const slow = 2 * time.Second
	at := func(command pdu.Command) map[pdu.Command]time.Duration {
		takes := map[pdu.Command]time.Duration{pdu.CommandBindTransceiver: 0, pdu.CommandEnquireLink: 0, pdu.CommandQuerySM: 0, pdu.CommandUnbind: 0}
		takes[command] = slow
		return takes
	}
	for name, p := range map[string]*slowPeer{
		"bind":                    {takes: at(pdu.CommandBindTransceiver)},
		"enquire_link":            {takes: at(pdu.CommandEnquireLink)},
		"query_sm":                {takes: at(pdu.CommandQuerySM)},
		"unbind":                  {takes: at(pdu.CommandUnbind)},
		"every answer, in pieces": {takes: at(0), dribble: slow / pdu.HeaderSize},
		"to read":                 {takes: at(0), deafAt: DefaultEnquireLink, deaf: slow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := hurry(t, p)
				<-time.After(5*time.Minute + 10*time.Second) // of the bubble, and between two enquire_links
				if ok, why := c.Ready(); !ok || p.dials.Load() != 1 {
					t.Errorf("ready %v %q after %d dials", ok, why, p.dials.Load())
				}
				if r, err := c.Query(t.Context(), Handle{Reference: "7F", To: "+447700900123"}); err != nil || r.State != provider.Delivered {
					t.Errorf("query_sm: %+v, %v", r, err)
				}
				began := time.Now()
				closeIn(t, c)
				if took := time.Since(began); name == "unbind" && took != slow {
					t.Errorf("unbind was waited for %v, want %v", took, slow)
				}
				p.conns.Wait()
			})
		})
	}
}

// TestASubmitIsGivenUpAtItsOwnTimeout however long the bind had been up, and idle, when it left.
func TestASubmitIsGivenUpAtItsOwnTimeout(t *testing.T) {
	t.Parallel()
	for _, idle := range []time.Duration{0, 2 * time.Second, time.Minute + time.Second/3} {
		t.Run(idle.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, c := startPiped(t, smpptest.Behaviour{DropEvery: 1}, Config{SendTimeout: hurried})
				<-time.After(idle)
				began := time.Now()
				r := send(c, submission(1))
				if took := time.Since(began); r.Outcome != provider.Unknown || r.Code != "timeout" || took != hurried*4/5 {
					t.Errorf("%v (%s) after %v", r.Outcome, r.Code, took)
				}
				closeIn(t, c)
				srv.Close()
			})
		})
	}
}

// TestAnAilingBindIsTriedAgainAtThePaceOfTheBind: a short DISPATCHER_SEND_TIMEOUT does not make it lose more messages.
func TestAnAilingBindIsTriedAgainAtThePaceOfTheBind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sick := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{DropEvery: 1}})
		healthy := smpptest.New(smpptest.Config{})
		c := startPair(t, Config{SendTimeout: hurried, Window: 8}, sick, healthy)
		sendFor(c, 16, time.Minute, hurried)
		before := sick.Stats().Submits
		sendFor(c, 16, 10*time.Minute, hurried)
		// The pause begins when the message before has been given up.
		pace := DefaultResponseTimeout + hurried*4/5
		if n, want := int(sick.Stats().Submits-before), int(10*time.Minute/pace); c.ailing() != 1 || n < want-1 || n > want+1 {
			t.Errorf("%d ailing, tried %d times in ten minutes, want %d", c.ailing(), n, want)
		}
		closeIn(t, c)
		sick.Close()
		healthy.Close()
	})
}
