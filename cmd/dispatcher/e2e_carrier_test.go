package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/provider/smpp/smpptest"
)

// quick answers every submit at once.
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

// submits returns the submits of all carriers in the order of time.
func (s *stage) submits() []smpptest.Submit {
	var all []smpptest.Submit
	for _, carrier := range s.carriers {
		all = append(all, carrier.Submits()...)
	}
	slices.SortStableFunc(all, func(a, b smpptest.Submit) int { return a.At.Compare(b.At) })
	return all
}

// submitted returns how many submits the carriers have read.
func (s *stage) submitted() (n int) {
	for _, carrier := range s.carriers {
		n += int(carrier.Stats().Submits)
	}
	return n
}

// arrivals counts the messages that the carriers accepted, by the id in their texts. A part that
// came twice counts its message twice.
func (s *stage) arrivals() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, m := range smpptest.Join(s.submits()) {
		id := idOf(m.Text)
		if id == "" && !m.Complete {
			continue // the first part never came: its message is unknown
		}
		counts[id] += 1 + m.Repeated
	}
	return counts
}

// idOf returns the id that function messages put into a text.
func idOf(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	id, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return id
}

// checkNoneTwice reports each message that the carriers accepted more than once.
func (s *stage) checkNoneTwice() {
	s.t.Helper()
	for id, n := range s.arrivals() {
		if n > 1 {
			s.t.Errorf("the carriers accepted message %s %d times", id, n)
		}
	}
}

// checkAllArrived reports each message that no carrier accepted, except those that are unknown in
// the ledger.
func (s *stage) checkAllArrived(ids []string) {
	s.t.Helper()
	arrived, states := s.arrivals(), s.states()
	missing := 0
	for _, id := range ids {
		if arrived[id] == 0 && states[id] != "unknown" {
			if missing++; missing <= 5 {
				s.t.Errorf("no carrier got message %s, which is %q in the ledger", id, states[id])
			}
		}
	}
	if missing > 5 {
		s.t.Errorf("and %d more", missing-5)
	}
}
