package pipeline

import (
	"slices"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// TestALateClaimCatchesUpWithoutABurst: ten release times 10 ms apart, six of which have passed.
func TestALateClaimCatchesUpWithoutABurst(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	var flights []*openAttempt
	for i := range 10 {
		flights = append(flights, &openAttempt{
			Attempt: &decide.Attempt{Channel: "a"},
			leave:   at(10 * i), latest: at(1000),
		})
	}
	// as on a sliding limit
	tight := &openAttempt{Attempt: &decide.Attempt{Channel: "a"}, leave: at(40), latest: at(75)}
	// too late in any case
	lost := &openAttempt{Attempt: &decide.Attempt{Channel: "a"}, leave: at(10), latest: at(20)}
	free := &openAttempt{Attempt: &decide.Attempt{Channel: "a"}}
	other := &openAttempt{Attempt: &decide.Attempt{Channel: "b"}, leave: at(80)}
	spread(append([]*openAttempt{tight, lost, free, other}, flights...), at(60))
	var got []int
	for _, a := range flights {
		got = append(got, int(a.leave.Sub(noon)/time.Millisecond))
	}
	if want := []int{60, 65, 70, 75, 80, 85, 90, 95, 100, 105}; !slices.Equal(got, want) {
		t.Errorf("they leave at %v, want %v", got, want)
	}
	if !tight.leave.Equal(at(65)) || !lost.leave.Equal(at(10)) || !free.leave.IsZero() ||
		!other.leave.Equal(at(80)) {
		t.Errorf("tight at %s, lost at %s, free at %s, other at %s", tight.leave, lost.leave,
			free.leave, other.leave)
	}
	far := []*openAttempt{
		{Attempt: &decide.Attempt{Channel: "a"}, leave: at(0)},
		{Attempt: &decide.Attempt{Channel: "a"}, leave: at(500)},
	}
	if spread(far, at(60)); !far[1].leave.Equal(at(500)) {
		t.Errorf("a release time far ahead was put off to %s", far[1].leave)
	}
}
