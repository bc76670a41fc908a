package smpp

import (
	"net"
	"testing"
	"time"

	"dispatcher/provider/smpp/pdu"
)

func TestControlPDUsGoBeforeQueuedSubmits(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	cfg := Config{}.withDefaults()
	s := newSession(&cfg, newPool(1), newPDUReader(ours), bindSequence)
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
	if len(commands) != 3 || commands[0] != pdu.CommandEnquireLink || commands[1] != pdu.CommandSubmitSM {
		t.Errorf("written %v", commands)
	}
	for i, at := range spans {
		if at.sequence != sequences[i+1] || s.pending[at.sequence] == nil {
			t.Errorf("submit %d is not registered under %d", i, sequences[i+1])
		}
	}
}
