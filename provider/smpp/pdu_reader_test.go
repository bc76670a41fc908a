package smpp

import (
	"net"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestAPeerThatDoesNotFinishItsPDUIsLeft, although octets of it may still come.
func TestAPeerThatDoesNotFinishItsPDUIsLeft(t *testing.T) {
	t.Parallel()
	for name, drip := range map[string]bool{"stops": false, "drips": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := make(chan error, 1)
			_, peer := startRaw(t, Config{ResponseTimeout: 100 * time.Millisecond, EnquireLink: time.Hour, OnState: func(s State) {
				if s.Phase == Lost {
					lost <- s.Err
				}
			}})
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
			if err := next(t, lost); err != errSlowPDU { //nolint:errorlint // It is the session's own.
				t.Errorf("lost because of %v", err)
			}
			if took := time.Since(began); took < 90*time.Millisecond {
				t.Errorf("left after %v", took)
			}
		})
	}
}

// TestAPeerThatWritesSlowlyButFinishesIsKept lets every octet come by itself.
func TestAPeerThatWritesSlowlyButFinishesIsKept(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{Trickle: 200 * time.Microsecond}})
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

// TestHalfABindRespIsNotWaitedForForEver: the next connection is made.
func TestHalfABindRespIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{HalfPDU: true}})
	cfg := fastConfig(srv.Addr())
	cfg.ResponseTimeout = 50 * time.Millisecond
	c := startUnready(t, cfg)
	eventually(t, "it connected twice", func() bool { return srv.Stats().Connections >= 2 })
	srv.SetBehaviour(smpptest.Behaviour{})
	eventually(t, "it is bound", func() bool { ok, _ := c.Ready(); return ok })
}

// TestTheTimeOfAPDUBeginsWithItAndEndsWithIt, whatever came before.
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
		eventually(t, "the PDU is begun", func() bool { _, begun := in.left(time.Now(), time.Hour); return begun })
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
			t.Errorf("%v are left for a PDU that is whole", left)
		}
	}
}
