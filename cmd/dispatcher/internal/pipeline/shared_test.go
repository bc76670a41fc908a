package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

func TestMinutesReturnTheLastWholeOne(t *testing.T) {
	t.Parallel()
	var m minutes
	messages := func(n int64) ledger.Grants {
		return ledger.Grants{Messages: n, Segments: 5 * n, Micros: 28_000 * n}
	}
	if got := m.last(noon); len(got) > 0 {
		t.Errorf("before any grant: got %v", got)
	}
	m.add(noon.Add(time.Second), "a", messages(3))
	m.add(noon.Add(59*time.Second), "a", messages(4))
	m.add(noon.Add(-time.Hour), "b", messages(1)) // the clock stepped back: no minute opens again
	m.add(noon.Add(60*time.Second), "a", messages(100))
	if got := m.last(noon.Add(61 * time.Second)); !cmp.Equal(got,
		map[string]ledger.Grants{"a": messages(7), "b": messages(1)}) {
		t.Errorf("in the next minute: %v", got)
	}
	m.last(noon.Add(61 * time.Second))["a"] = messages(0)
	if got := m.last(noon.Add(61 * time.Second)); got["a"] != messages(7) {
		t.Error("the caller's copy shares the counter")
	}
	if got := m.last(noon.Add(2 * time.Minute)); !cmp.Equal(got,
		map[string]ledger.Grants{"a": messages(100)}) {
		t.Errorf("two minutes later: %v", got)
	}
	m.add(noon.Add(2*time.Minute), "a", messages(5))
	if got := m.last(noon.Add(4 * time.Minute)); len(got) > 0 {
		t.Errorf("after a quiet minute: %v", got)
	}
}
