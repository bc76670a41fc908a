package smpp

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestAPeerThatDoesNotFinishItsPDUIsDisconnected even if it still sends octets.
func TestAPeerThatDoesNotFinishItsPDUIsDisconnected(t *testing.T) {
	t.Parallel()
	for name, drip := range map[string]bool{"stops": false, "drips": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := make(chan error, 1)
			_, peer := startRaw(t,
				Config{
					ResponseTimeout: bindTimeout, EnquireLink: time.Hour,
					OnState: func(s BindState) {
						if s.Phase == Lost {
							lost <- s.Err
						}
					},
				})
			began := time.Now()
			frame, err := pdu.Append(nil, 0, 1, &pdu.DeliverSM{Message: payload(1000)})
			if err != nil {
				t.Fatal(err)
			}
			peer.write(frame[:20])
			if drip {
				go func() {
					for i := range frame[20:] {
						<-time.After(10 * time.Millisecond)
						if _, err := peer.conn.Write(frame[20+i : 21+i]); err != nil {
							return
						}
					}
				}()
			}
			if err := next(t, lost); err != errSlowPDU { //nolint:errorlint // errSlowPDU is not wrapped
				t.Errorf("the session ended with %v", err)
			}
			if took := time.Since(began); took < bindTimeout {
				t.Errorf("the client disconnected after %v", took)
			}
		})
	}
}

// TestAPeerThatWritesSlowlyButFinishesIsKept sends one octet at a time.
func TestAPeerThatWritesSlowlyButFinishesIsKept(t *testing.T) {
	t.Parallel()
	srv := startServer(
		t, smpptest.Config{Behaviour: smpptest.Behaviour{Trickle: 200 * time.Microsecond}})
	c := startClient(t, fastConfig(srv.Addr()))
	for i := range 3 {
		if r := send(c, submission(i)); r.Outcome != provider.Accepted {
			t.Errorf("%+v", r)
		}
	}
	if n := srv.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestHalfABindRespIsNotWaitedForForEver: the client connects again.
func TestHalfABindRespIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{HalfPDU: true}})
	cfg := fastConfig(srv.Addr())
	cfg.ResponseTimeout = 50 * time.Millisecond
	c := startUnready(t, cfg)
	tier.Eventually(t, "it connected twice", func() bool { return srv.Stats().Connections >= 2 })
	srv.SetBehaviour(smpptest.Behaviour{})
	tier.Eventually(t, "it is bound", func() bool { ok, _ := c.Ready(); return ok })
}

// TestTheTimeOfAPDUBeginsWithItAndEndsWithIt whatever came before.
func TestTheTimeOfAPDUBeginsWithItAndEndsWithIt(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	in := newPDUReader(ours)
	read := make(chan error, 1)
	frame := pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 1)
	for range 2 {
		go func() {
			_, _, err := in.next()
			read <- err
		}()
		if _, err := theirs.Write(frame[:7]); err != nil {
			t.Fatal(err)
		}
		tier.Eventually(t, "the PDU is begun",
			func() bool { _, begun := in.left(time.Now(), time.Hour); return begun })
		if left, _ := in.left(time.Now(), time.Hour); left <= 0 || left > time.Hour {
			t.Errorf("%v of an hour are left", left)
		}
		if left, _ := in.left(time.Now().Add(time.Hour), time.Minute); left > 0 {
			t.Errorf("%v are left after an hour", left)
		}
		if _, err := theirs.Write(frame[7:]); err != nil {
			t.Fatal(err)
		}
		if err := next(t, read); err != nil {
			t.Fatal(err)
		}
		if left, begun := in.left(time.Now(), time.Hour); begun {
			t.Errorf("%v are left for a complete PDU", left)
		}
	}
}

// FuzzSession checks that no stream of a peer makes a session panic or hold more answers than
// allowed, however it is split, and that submissions in flight keep a possible outcome.
func FuzzSession(f *testing.F) {
	var all []byte
	for i, body := range []pdu.Body{
		&pdu.MessageResp{
			Command: pdu.CommandSubmitSMResp, MessageID: "7F",
			TLVs: pdu.TLVs{pdu.Uint8(pdu.TagCongestionState, 95)},
		},
		&pdu.DeliverSM{Message: textReceipt("id:7F stat:DELIVRD err:000")},
		&pdu.QuerySMResp{MessageID: "7F", MessageState: 2},
		&pdu.DataSM{TLVs: pdu.TLVs{{Tag: pdu.TagMessagePayload, Value: []byte("STOP")}}},
		&pdu.Empty{Command: pdu.CommandUnbind},
		&pdu.Outbind{SystemID: "smsc"}, &pdu.AlertNotification{},
		&pdu.Empty{Command: pdu.CommandGenericNack},
	} {
		frame, err := pdu.Append(nil, 0, uint32(i+1), body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
		all = append(all, frame...)
	}
	f.Add(all)
	f.Add(all[7:])
	f.Fuzz(func(t *testing.T, stream []byte) {
		cfg := Config{
			OnReceipt:       atOnce(func(provider.Receipt) bool { return true }),
			OnInbound:       func(provider.Inbound) bool { return false },
			OnDeliver:       func(context.Context, pdu.DeliverSM) pdu.Status { return 0 },
			HonorCongestion: true, UntypedReceipts: true, ReceiptKeyTLV: 0x1400,
		}.withDefaults()
		s := newSession(&cfg, newPool(8), newPDUReader(nil))
		s.in.reader = pdu.NewReader(iotest.HalfReader(bytes.NewReader(stream)))
		s.pool.add(s)
		frame := pdu.AppendEmpty(nil, pdu.CommandSubmitSM, 0, 0)
		calls := []*call{
			{frame: frame, done: make(chan struct{}, 1)},
			{frame: frame, done: make(chan struct{}, 1)},
		}
		s.slots.used = len(calls)
		s.submit(time.Time{}, calls...)
		s.take(nil, nil)
		for s.readLoop() == nil {
			t.Fatal("the session did not end")
		}
		if len(s.control) > maxControl {
			t.Fatalf("%d octets of answers", len(s.control))
		}
		s.finishAll()
		for i, c := range calls {
			select {
			case <-c.done:
			default:
				t.Fatalf("submit %d has no outcome", i)
			}
		}
		if s.slots.used != 0 {
			t.Fatalf("%d slots are still in use", s.slots.used)
		}
	})
}

func TestControlPDUsGoBeforeQueuedSubmits(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	cfg := Config{}.withDefaults()
	s := newSession(&cfg, newPool(1), newPDUReader(ours))
	frame, err := pdu.Append(nil, 0, 0, &pdu.SubmitSM{})
	if err != nil {
		t.Fatal(err)
	}
	if !s.submit(time.Time{}, &call{frame: frame}, &call{frame: frame}) {
		t.Fatal("not taken")
	}
	if !s.enquire() {
		t.Fatal("no enquire_link")
	}
	buf, spans, _ := s.take(nil, nil)
	var commands []pdu.Command
	var sequences []uint32
	for at := 0; at < len(buf); {
		h, err := pdu.ParseHeader(buf[at:])
		if err != nil {
			t.Fatal(err)
		}
		commands, sequences = append(commands, h.Command), append(sequences, h.Sequence)
		at += int(h.Length)
	}
	if len(commands) != 3 || commands[0] != pdu.CommandEnquireLink ||
		commands[1] != pdu.CommandSubmitSM {
		t.Errorf("written %v", commands)
	}
	for i, at := range spans {
		if at.sequence != sequences[i+1] || s.pending[at.sequence] == nil {
			t.Errorf("submit %d is not registered under %d", i, sequences[i+1])
		}
	}
}
