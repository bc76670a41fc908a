package smpptest

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
)

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

const testTimeout = tier.LongestWait

// esme is a client that sends exactly what a test wants.
type esme struct {
	t        *testing.T
	conn     net.Conn
	reader   *pdu.Reader
	sequence uint32
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	srv, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

func dial(t *testing.T, srv *Server) *esme {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return &esme{t: t, conn: conn, reader: pdu.NewReader(conn)}
}

func (e *esme) send(body pdu.Body) {
	e.t.Helper()
	e.sequence++
	frame, err := pdu.Append(nil, 0, e.sequence, body)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.conn.Write(frame); err != nil {
		e.t.Fatal(err)
	}
}

func (e *esme) read() (pdu.Header, pdu.Body) {
	e.t.Helper()
	_, frame, err := e.reader.Next()
	if err != nil {
		e.t.Fatal(err)
	}
	h, body, err := pdu.Decode(frame)
	if err != nil {
		e.t.Fatal(err)
	}
	return h, body
}

func (e *esme) ask(body pdu.Body) (pdu.Header, pdu.Body) {
	e.t.Helper()
	e.send(body)
	h, answer := e.read()
	if h.Sequence != e.sequence {
		e.t.Errorf("answer %+v to request %d", h, e.sequence)
	}
	return h, answer
}

func (e *esme) bind(command pdu.Command, password string) pdu.Status {
	e.t.Helper()
	h, _ := e.ask(&pdu.Bind{
		Command: command, SystemID: "acme", Password: password, InterfaceVersion: pdu.Version34,
	})
	return h.Status
}

func (e *esme) closed() bool {
	_, _, err := e.reader.Next()
	return err != nil
}

func message(to, text string) *pdu.SubmitSM {
	return &pdu.SubmitSM{Message: pdu.Message{
		Source: pdu.Address{TON: 5, Addr: "ACME"}, Dest: pdu.Address{Addr: to},
		RegisteredDelivery: 1, ShortMessage: []byte(text),
	}}
}

func TestBindsNeedTheAccountWhenThereIsOne(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{SystemID: "acme", Password: "right"})
	for password, want := range map[string]pdu.Status{
		"right": pdu.StatusOK, "wrong": pdu.StatusInvPaswd,
	} {
		e := dial(t, srv)
		if got := e.bind(pdu.CommandBindTransceiver, password); got != want {
			t.Errorf("password %q: %v, want %v", password, got, want)
		}
		if want != pdu.StatusOK && !e.closed() {
			t.Error("the connection is still open after a refused bind")
		}
	}
	e := dial(t, srv)
	if h, _ := e.ask(&pdu.Bind{
		Command: pdu.CommandBindReceiver, SystemID: "other",
	}); h.Status != pdu.StatusInvSysID {
		t.Errorf("another account: %v", h.Status)
	}
	srv.SetBehaviour(Behaviour{RefuseBinds: pdu.StatusSysErr})
	if got := dial(t, srv).bind(pdu.CommandBindTransceiver, "right"); got != pdu.StatusSysErr {
		t.Errorf("refused binds: %v", got)
	}
	// A bind counts once its answer has left.
	tier.Eventually(t, "one bind and three refused ones are counted", func() bool {
		s := srv.Stats()
		return s.Binds == 1 && s.BindsRefused == 3
	})
}

func TestOnlyTransmittersSubmit(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1})
	unbound := dial(t, srv)
	if h, _ := unbound.ask(message("1", "x")); h.Status != pdu.StatusInvBndSts {
		t.Errorf("before the bind: %v", h.Status)
	}
	for command, want := range map[pdu.Command]pdu.Status{
		pdu.CommandBindReceiver: pdu.StatusInvBndSts, pdu.CommandBindTransmitter: pdu.StatusOK,
		pdu.CommandBindTransceiver: pdu.StatusOK,
	} {
		e := dial(t, srv)
		e.bind(command, "")
		if got := e.bind(command, ""); got != pdu.StatusAlyBnd {
			t.Errorf("second bind: %v", got)
		}
		if !e.closed() {
			t.Error("a second bind does not end the connection")
		}
		e = dial(t, srv)
		e.bind(command, "")
		if h, _ := e.ask(message("1", "x")); h.Status != want {
			t.Errorf("%v: %v, want %v", command, h.Status, want)
		}
	}
	if n := len(srv.Submits()); n != 2 {
		t.Errorf("%d submits in the log, want 2", n)
	}
}

func TestTheLogSaysWhatWasSubmitted(t *testing.T) {
	t.Parallel()
	content := make(chan Submit, 1)
	srv := start(t, Config{Log: -1, OnSubmit: func(s Submit) { content <- s }})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	m := message("447700900123", "\x06\x08\x04\x12\x34\x03\x02hi")
	m.ESMClass, m.ServiceType, m.ValidityPeriod = pdu.ESMClassUDHI, "CMT", "000000010000000R"
	m.PriorityFlag, m.ScheduleDeliveryTime = 2, "000000000100000R"
	_, body := e.ask(m)
	want := Submit{
		Connection: 1, SystemID: "acme", Sequence: 2, From: "ACME", To: "447700900123",
		ESMClass: pdu.ESMClassUDHI,
		Source:   pdu.Address{TON: 5, Addr: "ACME"}, Dest: pdu.Address{Addr: "447700900123"},
		Priority: 2, Schedule: "000000000100000R",
		ServiceType: "CMT", Validity: "000000010000000R", Reference: 0x1234, Part: 2, Parts: 3,
		Text: "hi", MessageID: "1", Receipt: true,
	}
	got := srv.Submits()[0]
	if got.At.IsZero() {
		t.Error("the time is missing")
	}
	got.At = time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if resp, ok := body.(*pdu.MessageResp); !ok || resp.MessageID != "1" {
		t.Errorf("answer %+v", body)
	}
	if s := <-content; s.Text != "hi" {
		t.Errorf("content %+v", s)
	}
}

func TestTheScriptDecidesAboutEachSubmit(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	run := func(b Behaviour, n int) []Answer {
		s := &script{Behaviour: b}
		var list []Answer
		for range n {
			list = append(list, s.decide(at, Submit{}))
		}
		return list
	}
	ok, throttled, dropped := Answer{}, Answer{Status: pdu.StatusThrottled}, Answer{State: Dropped}
	for name, c := range map[string]struct {
		b    Behaviour
		want []Answer
	}{
		"accept":        {Behaviour{}, []Answer{ok, ok}},
		"throttle":      {Behaviour{Throttle: true}, []Answer{throttled, throttled}},
		"rate":          {Behaviour{Rate: 2}, []Answer{ok, ok, throttled}},
		"every second":  {Behaviour{ErrorEvery: 2}, []Answer{ok, {Status: pdu.StatusSysErr}, ok}},
		"chosen status": {Behaviour{ErrorEvery: 1, ErrorStatus: 0x410}, []Answer{{Status: 0x410}}},
		"drop":          {Behaviour{DropEvery: 2}, []Answer{ok, dropped}},
		"cut once":      {Behaviour{CutAfter: 2}, []Answer{ok, {State: Cut}, ok, ok}},
		"silent":        {Behaviour{Silent: true}, []Answer{dropped}},
		"latency":       {Behaviour{Latency: time.Second}, []Answer{{Delay: time.Second}}},
		"own": {
			Behaviour{Throttle: true, Decide: func(Submit) Answer { return Answer{Delay: 1} }},
			[]Answer{{Delay: 1}},
		},
	} {
		if diff := cmp.Diff(c.want, run(c.b, len(c.want))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	s := &script{Behaviour: Behaviour{Rate: 1, Latency: time.Second, Jitter: time.Second}}
	first, second, third := s.decide(at, Submit{}), s.decide(at, Submit{}),
		s.decide(at.Add(time.Second), Submit{})
	if first.Status != 0 || second.Status == 0 || third.Status != 0 {
		t.Error("the rate does not begin again with the next second")
	}
	if first.Delay < time.Second || first.Delay >= 2*time.Second {
		t.Errorf("delay %v", first.Delay)
	}
}

func TestACutLeavesDelayedAnswersUnsaid(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: 10, Behaviour: Behaviour{Latency: time.Hour, CutAfter: 3}})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	for range 3 {
		e.send(message("1", "x"))
	}
	if !e.closed() {
		t.Error("the connection was not cut")
	}
	srv.Close()
	for i, s := range srv.Submits() {
		if s.AnswerState != Cut {
			t.Errorf("submit %d is %v", i, s.AnswerState)
		}
	}
}

func TestTheLogKeepsTheLastAndStaysBounded(t *testing.T) {
	t.Parallel()
	for keep, want := range map[int][]uint32{
		0: nil, 3: {4, 5, 6}, 6: {1, 2, 3, 4, 5, 6}, 10: {1, 2, 3, 4, 5, 6}, -1: {1, 2, 3, 4, 5, 6},
	} {
		j := journal{keep: keep}
		for i := range uint32(6) {
			j.write(Submit{Sequence: i + 1})
		}
		j.cut(0) // no longer in a short log
		j.cut(5)
		var got []uint32
		for _, s := range j.list() {
			got = append(got, s.Sequence)
			if cut := s.Sequence == 6 || s.Sequence == 1; (s.AnswerState == Cut) != cut {
				t.Errorf("keep %d: entry %d is %v", keep, s.Sequence, s.AnswerState)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("keep %d: %v, want %v", keep, got, want)
		}
	}
}

func TestReceiptsWaitForAReceiver(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Behaviour: Behaviour{
		Receipts: true, ReceiptState: func(Submit) string { return "UNDELIV" },
		MessageID: func(uint64) string { return "id-7" },
	}})
	transmitter := dial(t, srv)
	transmitter.bind(pdu.CommandBindTransmitter, "")
	transmitter.ask(message("447700900123", "hello"))
	receiver := dial(t, srv)
	receiver.bind(pdu.CommandBindReceiver, "")
	h, body := receiver.read()
	receipt, ok := body.(*pdu.DeliverSM)
	if !ok || receipt.ESMClass != pdu.ESMClassReceipt || receipt.Source.Addr != "447700900123" ||
		receipt.Dest.Addr != "ACME" {
		t.Fatalf("receipt %+v", body)
	}
	if state, _ := receipt.TLVs.Uint(pdu.TagMessageState); state != 5 {
		t.Errorf("message_state %d", state)
	}
	// The receiver disconnects without an answer; the next one gets the receipt again.
	_ = receiver.conn.Close()
	receiver = dial(t, srv)
	receiver.bind(pdu.CommandBindReceiver, "")
	h, _ = receiver.read()
	if _, err := receiver.conn.Write(pdu.AppendEmpty(nil, pdu.CommandDeliverSMResp, 0,
		h.Sequence)); err != nil {
		t.Fatal(err)
	}
	if h, _ := receiver.ask(&pdu.Empty{
		Command: pdu.CommandEnquireLink,
	}); h.Command != pdu.CommandEnquireLinkResp {
		t.Errorf("answer %+v", h)
	}
	if s := srv.Stats(); s.ReceiptsSent != 2 || s.ReceiptsTaken != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestDataSMAndStrangeRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Log: -1})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	data := &pdu.DataSM{
		Dest: pdu.Address{Addr: "1"},
		TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("long")}},
	}
	if h, _ := e.ask(data); h.Command != pdu.CommandDataSMResp || h.Status != pdu.StatusOK {
		t.Errorf("data_sm: %+v", h)
	}
	if got := srv.Submits()[0].Text; got != "long" {
		t.Errorf("text %q", got)
	}
	if h, _ := e.ask(&pdu.QuerySM{}); h.Command != pdu.CommandGenericNack ||
		h.Status != pdu.StatusInvCmdID {
		t.Errorf("query_sm: %+v", h)
	}
	if _, err := e.conn.Write(pdu.AppendEmpty(nil, pdu.CommandSubmitSM, 0, 9)); err != nil {
		t.Fatal(err)
	}
	if h, _ := e.read(); h.Status != pdu.StatusInvMsgLen {
		t.Errorf("a submit_sm without body: %+v", h)
	}
	if h, _ := e.ask(&pdu.Empty{Command: pdu.CommandUnbind}); h.Command != pdu.CommandUnbindResp ||
		!e.closed() {
		t.Errorf("unbind: %+v", h)
	}
	e = dial(t, srv)
	if _, err := e.conn.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	if h, _ := e.read(); h.Command != pdu.CommandGenericNack || h.Status != pdu.StatusInvCmdLen ||
		!e.closed() {
		t.Errorf("garbage: %+v", h)
	}
}

func TestCloseIsCleanAndRepeatable(t *testing.T) {
	t.Parallel()
	srv := start(t, Config{Behaviour: Behaviour{Latency: time.Hour, Receipts: true}})
	e := dial(t, srv)
	e.bind(pdu.CommandBindTransceiver, "")
	e.send(message("1", "x"))
	srv.Close()
	srv.Close()
	if !e.closed() {
		t.Error("the connection is still open after Close")
	}
	ours, theirs := net.Pipe()
	srv.ServeConn(theirs)
	if _, err := ours.Write([]byte{0}); err == nil {
		t.Error("a closed server accepted a connection")
	}
	if _, err := Start(Config{Addr: "256.0.0.1:0"}); err == nil {
		t.Error("Start accepted an invalid address")
	}
	if got := New(Config{}); got.Addr() != "" {
		t.Errorf("address %q without a listener", got.Addr())
	} else {
		got.Close()
	}
}
