package smpp

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// states collects the calls of OnState.
type states struct {
	mu   sync.Mutex
	list []BindState // guarded by mu
}

func (s *states) add(state BindState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, state)
}

func (s *states) errs() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, state := range s.list {
		if state.Err != nil {
			errs = append(errs, state.Err)
		}
	}
	return errs
}

// closeIn closes a client inside a synctest bubble, where no Cleanup may wait.
func closeIn(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestReconnectPausesAreSpreadBetweenTheirBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		cfg := Config{
			Addresses: []string{"h:1"}, SystemID: "a", ReconnectMin: time.Second,
			ReconnectMax: 30 * time.Second,
		}
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			at = append(at, time.Now())
			return nil, errors.New("connection refused")
		}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // inside the bubble
		if ok, why := c.Ready(); ok || why != "connecting" {
			t.Errorf("ready %v, %q", ok, why)
		}
		closeIn(t, c)
		var gaps []time.Duration
		for i := range at[1:] {
			gaps = append(gaps, at[i+1].Sub(at[i]))
		}
		low, high := slices.Min(gaps), slices.Max(gaps)
		if low < time.Second || high > 30*time.Second {
			t.Errorf("pauses from %v to %v", low, high)
		}
		if gaps[0] > 2*time.Second {
			t.Errorf("the first pause is %v, want at most 2s", gaps[0])
		}
		if n := len(gaps); n < 3600/30 || n > 3600/8 {
			t.Errorf("%d dials in an hour at a mean pause of 15s", n)
		}
		slices.Sort(gaps)
		if len(slices.Compact(gaps)) < 50 {
			t.Error("fewer than 50 different pauses")
		}
	})
}

// TestAWrongPasswordIsReportedAndRetriedSlowly binds over pipes, so that an hour passes at once.
func TestAWrongPasswordIsReportedAndRetriedSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := smpptest.New(smpptest.Config{SystemID: "acme", Password: "right"})
		var content states
		cfg := Config{
			Addresses: []string{"h:1"}, SystemID: "acme", Password: "wrongone",
			OnState: content.add,
		}
		cfg.Dial = pipeTo(srv)
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // inside the bubble
		if ok, why := c.Ready(); ok || why != "bind_refused" {
			t.Errorf("ready %v, %q", ok, why)
		}
		closeIn(t, c)
		srv.Close()
		if n := srv.Stats().BindsRefused; n < 100 || n > 1000 {
			t.Errorf("%d binds in an hour", n)
		}
		for _, err := range content.errs() {
			link, ok := errors.AsType[*LinkError](err)
			if !ok || link.Why != WhyBindRefused || link.Status != pdu.StatusInvPaswd ||
				strings.Contains(err.Error(), "wrongone") {
				t.Fatalf("content %v", err)
			}
		}
		if len(content.errs()) == 0 {
			t.Error("no error was reported")
		}
	})
}

// pipeTo dials a server over net.Pipe.
func pipeTo(srv *smpptest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		srv.ServeConn(theirs)
		return ours, nil
	}
}

// TestEnquireLinkKeepsItsInterval counts over an hour of fake time.
func TestEnquireLinkKeepsItsInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := smpptest.New(smpptest.Config{})
		cfg := Config{Addresses: []string{"h:1"}, SystemID: "acme", Dial: pipeTo(srv)}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour + time.Second) // inside the bubble
		if stats := srv.Stats(); stats.EnquireLinks != 120 || stats.Binds != 1 {
			t.Errorf("stats %+v, want 120 enquire_links on one bind", stats)
		}
		srv.SetBehaviour(smpptest.Behaviour{IgnoreEnquireLink: true})
		<-time.After(30 * time.Second)
		srv.SetBehaviour(smpptest.Behaviour{})
		<-time.After(12 * time.Second)
		if stats := srv.Stats(); stats.Binds != 2 {
			t.Errorf("%d binds, want a second one after 10s without an answer", stats.Binds)
		}
		closeIn(t, c)
		srv.Close()
		if n := srv.Stats().Unbinds; n != 1 {
			t.Errorf("%d unbinds", n)
		}
	})
}

func TestABindThatIsNotAnsweredTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{Silent: true}})
		var content states
		c, err := New(Config{
			Addresses: []string{"h:1"}, SystemID: "acme", Dial: pipeTo(srv),
			OnState: content.add,
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10*time.Second + time.Millisecond) // inside the bubble
		errs := content.errs()
		if len(errs) != 1 || errs[0].Error() != "bind_timeout" {
			t.Errorf("content %v", errs)
		}
		closeIn(t, c)
		srv.Close()
	})
}

func TestTheNextAddressIsTriedWhenOneFails(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	refusing := startServer(t,
		smpptest.Config{Behaviour: smpptest.Behaviour{RefuseBinds: pdu.StatusBindFail}})
	c := startClient(t, fastConfig(providertest.NoListener, refusing.Addr(), srv.Addr()))
	if r := send(c, submission(1)); r.Outcome != provider.Accepted {
		t.Errorf("result %+v", r)
	}
	if n := refusing.Stats().BindsRefused; n == 0 {
		t.Error("the second address was not tried")
	}
}

func TestBindsStartWithDifferentAddresses(t *testing.T) {
	t.Parallel()
	one, two := startServer(t, smpptest.Config{}), startServer(t, smpptest.Config{})
	cfg := fastConfig(one.Addr(), two.Addr())
	cfg.Binds = 4
	startClient(t, cfg)
	tier.Eventually(t, "both have two binds",
		func() bool { return one.Stats().Binds == 2 && two.Stats().Binds == 2 })
}

func TestSeveralBindsShareTheLoadAndSurviveEachOther(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	srv := startServer(t, smpptest.Config{Log: -1, Behaviour: holding(hold)})
	cfg := fastConfig(srv.Addr())
	cfg.Binds, cfg.Window = 3, 4
	c := startClient(t, cfg)
	tier.Eventually(t, "all are bound", func() bool { return srv.Stats().Binds == 3 })
	tier.Eventually(t, "all take part", func() bool { return c.bound() == 3 })
	var results []<-chan provider.Result
	for range cfg.Window {
		for range cfg.Binds {
			results = append(results, sendAsync(c, submission(len(results))))
		}
		tier.Eventually(t, "the submits have arrived",
			func() bool { return len(srv.Submits()) == len(results) })
		perBind := map[int]int{}
		for _, s := range srv.Submits() {
			perBind[s.Connection]++
		}
		for connection, n := range perBind {
			if n != len(results)/cfg.Binds {
				t.Errorf("connection %d has %d of %d submits", connection, n, len(results))
			}
		}
	}
	close(hold)
	for i, done := range results {
		if r := <-done; r.Outcome != provider.Accepted {
			t.Errorf("message %d: %+v", i, r)
		}
	}
	srv.CutAll()
	tier.Eventually(t, "all are bound again",
		func() bool { return srv.Stats().Binds == 6 && c.bound() == 3 })
}

func (c *Client) bound() int {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return len(c.pool.sessions)
}

func TestPairsSubmitOnOneConnectionAndReceiveOnTheOther(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Log: -1})
	got := make(chan pdu.DeliverSM, 10)
	cfg := fastConfig(srv.Addr())
	cfg.Bind = TransmitterReceiver
	cfg.OnDeliver = func(_ context.Context, d pdu.DeliverSM) pdu.Status {
		got <- d
		return pdu.StatusOK
	}
	c := startClient(t, cfg)
	tier.Eventually(t, "both are bound", func() bool { return srv.Stats().Binds == 2 })
	for i := range 5 {
		if r := send(c, submission(i)); r.Outcome != provider.Accepted {
			t.Errorf("result %+v", r)
		}
	}
	if n := srv.Deliver(pdu.Message{ShortMessage: []byte("STOP")}); n != 1 {
		t.Errorf("%d connections receive, want 1", n)
	}
	if d := <-got; string(d.ShortMessage) != "STOP" {
		t.Errorf("received %+v", d)
	}
	states := c.States()
	if len(states) != 2 || states[0].Role != pdu.CommandBindTransmitter ||
		states[1].Role != pdu.CommandBindReceiver {
		t.Errorf("states %+v", states)
	}
	for _, s := range states {
		if s.Phase != Bound {
			t.Errorf("state %+v", s)
		}
	}
}

func TestTLSCarriesMessagesAndHoldsTheCertificate(t *testing.T) {
	t.Parallel()
	server, client := tlsPair(t)
	srv := startServer(t, smpptest.Config{TLS: server, SystemID: "acme", Password: "s3cret"})
	cfg := fastConfig(srv.Addr())
	cfg.TLS = client
	if r := send(startClient(t, cfg), submission(1)); r.Outcome != provider.Accepted {
		t.Errorf("result %+v", r)
	}
	_, otherAuthority := tlsPair(t)
	content := make(chan error, 100)
	cfg = fastConfig(srv.Addr())
	cfg.TLS, cfg.ReconnectMin, cfg.ReconnectMax = otherAuthority, time.Hour, time.Hour
	cfg.OnState = func(s BindState) {
		if s.Err != nil {
			content <- s.Err
		}
	}
	startUnready(t, cfg)
	err := <-content
	if link, ok := errors.AsType[*LinkError](err); !ok || link.Why != WhyTLS {
		t.Errorf("a certificate of an unknown authority: %v", err)
	}
}

func TestPeersOfOtherVersionsAreTolerated(t *testing.T) {
	t.Parallel()
	for _, version := range []byte{0, pdu.Version33, pdu.Version34, pdu.Version50, 0xFF} {
		srv := startServer(t, smpptest.Config{Version: version})
		if r := send(startClient(t, fastConfig(srv.Addr())),
			submission(1)); r.Outcome != provider.Accepted {
			t.Errorf("version 0x%x: %+v", version, r)
		}
	}
}

func TestPDUsBeforeTheBindResponseAreAnswered(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	cfg := fastConfig("pipe:1")
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	c := startUnready(t, cfg)
	peer := newRawPeer(t, theirs)
	h := peer.expect(pdu.CommandBindTransceiver)
	peer.send(0, 1, &pdu.Outbind{SystemID: "smsc"})
	if nack := peer.expect(pdu.CommandGenericNack); nack.Status != pdu.StatusInvBndSts {
		t.Errorf("outbind was answered %v", nack.Status)
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 2))
	peer.expect(pdu.CommandEnquireLinkResp)
	peer.send(0, 3, &pdu.AlertNotification{})
	// The answer and a request come in one write: buffered octets must not be lost.
	frame, err := pdu.Append(nil, 0, h.Sequence,
		&pdu.BindResp{Command: pdu.CommandBindTransceiverResp})
	if err != nil {
		t.Fatal(err)
	}
	peer.write(pdu.AppendEmpty(frame, pdu.CommandEnquireLink, 0, 4))
	peer.expect(pdu.CommandEnquireLinkResp)
	tier.Eventually(t, "the client is ready", func() bool { ok, _ := c.Ready(); return ok })
	go answerUnbind(peer)
}

func TestCloseUnbindsEveryBindAndIsIdempotent(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	cfg := fastConfig(srv.Addr())
	cfg.Bind, cfg.Binds = TransmitterReceiver, 2
	var content states
	cfg.OnState = content.add
	c := startClient(t, cfg)
	tier.Eventually(t, "all are bound", func() bool {
		return !slices.ContainsFunc(c.States(), func(s BindState) bool { return s.Phase != Bound })
	})
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := srv.Stats().Unbinds; n != 4 {
		t.Errorf("%d unbinds, want 4", n)
	}
	if ok, why := c.Ready(); ok || why != "closed" {
		t.Errorf("ready %v, %q", ok, why)
	}
	if errs := content.errs(); len(errs) != 0 {
		t.Errorf("closing was reported as %v", errs)
	}
	for _, s := range c.States() {
		if s.Phase != Closed {
			t.Errorf("state %+v", s)
		}
	}
}

func TestCloseCutsAPeerThatDoesNotAnswerUnbind(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	c := startClient(t, fastConfig(srv.Addr()))
	srv.SetBehaviour(smpptest.Behaviour{Silent: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
}
