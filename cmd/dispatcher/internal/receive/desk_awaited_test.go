package receive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
)

// TestWhoWaitsForABookingWaitsBriefly: providers call over few connections, so that each moment counts. What was only
// taken before is booked with it.
func TestWhoWaitsForABookingWaitsBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &journalBooks{}
		d, _, stop := desk(t, b)
		defer stop()
		if !d.Take("a", delivered("taken")) {
			t.Fatal("not taken")
		}
		began := time.Now()
		if err := d.Book(t.Context(), "a", []provider.Receipt{delivered("awaited")}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("booked after %s", took)
		}
		if !b.has("taken") || !b.has("awaited") {
			t.Error("not all is booked")
		}
	})
}
