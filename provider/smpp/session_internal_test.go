package smpp

import (
	"net"
	"testing"
	"testing/synctest"

	"dispatcher/provider/smpp/pdu"
)

// TestTheTokenComesBeforeTheSlot holds the order that keeps a part from starting after
// an earlier one has failed: who gets a slot can see how its last user ended.
func TestTheTokenComesBeforeTheSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		s := &session{pool: p}
		p.join(s)
		if got, why := p.acquire(t.Context()); got != s {
			t.Fatal(why)
		}
		c := &call{done: make(chan struct{})} // without room: the token waits for its taker
		go s.finish(c)
		synctest.Wait()
		if s.slots.used != 1 {
			t.Error("the slot was free before the token was taken")
		}
		<-c.done
		synctest.Wait()
		if s.slots.used != 0 {
			t.Error("the slot was not released")
		}
		p.leave()
	})
}

func TestControlPDUsGoBeforeQueuedSubmits(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	cfg := Config{}.withDefaults()
	s := newSession(&cfg, newPool(1), ours, pdu.NewReader(ours), bindSequence)
	frame, err := pdu.Append(nil, 0, 0, &pdu.SubmitSM{})
	if err != nil {
		t.Fatal(err)
	}
	s.queue = append(s.queue, &call{frame: frame}, &call{frame: frame})
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
	if len(commands) != 3 || commands[0] != pdu.CommandEnquireLink || commands[1] != pdu.CommandSubmitSM {
		t.Errorf("written %v", commands)
	}
	for i, at := range spans {
		if at.sequence != sequences[i+1] || s.pending[at.sequence] == nil {
			t.Errorf("submit %d is not registered under %d", i, sequences[i+1])
		}
	}
}
