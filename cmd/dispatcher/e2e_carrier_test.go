package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider/smpp/smpptest"
)

// quick answers as a quick carrier does.
func quick() smpptest.Behaviour {
	return smpptest.Behaviour{Latency: 2 * time.Millisecond, Jitter: 3 * time.Millisecond}
}

// startCarrier starts an SMSC that logs everything.
func startCarrier(t testing.TB, behaviour smpptest.Behaviour) *smpptest.Server {
	t.Helper()
	server, err := smpptest.Start(smpptest.Config{Behaviour: behaviour, Log: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// submits is the log of all carriers, in the order of time.
func (s *stage) submits() []smpptest.Submit {
	var all []smpptest.Submit
	for _, carrier := range s.carriers {
		all = append(all, carrier.Submits()...)
	}
	slices.SortStableFunc(all, func(a, b smpptest.Submit) int { return a.At.Compare(b.At) })
	return all
}

// submitted is how many submits the carriers have read.
func (s *stage) submitted() (n int) {
	for _, carrier := range s.carriers {
		n += int(carrier.Stats().Submits)
	}
	return n
}

// arrivals counts, by the id in their texts, the messages that the carriers accepted. A part
// that came twice makes its message count twice.
func (s *stage) arrivals() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, m := range smpptest.Join(s.submits()) {
		id := idOf(m.Text)
		if id == "" && !m.Complete {
			continue // a later part whose first part never came: its message is Unknown
		}
		counts[id] += 1 + m.Repeated
	}
	return counts
}

// idOf finds the id that messages carries in each text.
func idOf(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	id, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return id
}

// checkNoneTwice fails for each message that the carriers accepted more than once.
func (s *stage) checkNoneTwice() {
	s.t.Helper()
	for id, n := range s.arrivals() {
		if n > 1 {
			s.t.Errorf("the carriers accepted message %s %d times", id, n)
		}
	}
}

// checkAllArrived fails for each message that no carrier accepted, but for those that
// the ledger calls unknown.
func (s *stage) checkAllArrived(ids []string) {
	s.t.Helper()
	arrived, states := s.arrivals(), s.states()
	missing := 0
	for _, id := range ids {
		if arrived[id] == 0 && states[id] != "unknown" {
			if missing++; missing <= 5 {
				s.t.Errorf("no carrier saw message %s, which the ledger calls %q", id, states[id])
			}
		}
	}
	if missing > 5 {
		s.t.Errorf("and %d more", missing-5)
	}
}
