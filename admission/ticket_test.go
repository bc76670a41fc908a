package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

func TestTicketIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	accepted := time.Date(2023, 9, 11, 11, 45, 54, 0, time.UTC)
	got := admission.NewTicket(accepted)
	want := admission.Ticket{Bucket: time.Date(2023, 9, 11, 11, 45, 0, 0, time.UTC), AcceptedAt: accepted, LastCheckIn: accepted}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTicketIsValidForHoldAfterItsLastCheckIn(t *testing.T) {
	t.Parallel()
	const hold = 10 * time.Minute
	first := admission.NewTicket(noon)
	second := first.CheckIn(noon.Add(9 * time.Minute))
	if second.Bucket != first.Bucket || second.AcceptedAt != first.AcceptedAt || !second.LastCheckIn.Equal(noon.Add(9*time.Minute)) {
		t.Errorf("%+v", second)
	}
	for _, tc := range []struct {
		ticket *admission.Ticket
		after  time.Duration
		hold   time.Duration
		want   bool
	}{
		{nil, 0, hold, false},
		{&first, 0, hold, true},
		{&first, hold - 1, hold, true},
		{&first, hold, hold, false},
		{&first, 0, 0, false},
		{&first, -time.Minute, hold, true}, // the clock stepped back
		{&second, hold, hold, true},
		{&second, 19 * time.Minute, hold, false},
	} {
		if got := tc.ticket.Valid(noon.Add(tc.after), tc.hold); got != tc.want {
			t.Errorf("%+v after %s, held for %s: %t", tc.ticket, tc.after, tc.hold, got)
		}
	}
}
