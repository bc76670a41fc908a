package receive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
)

// taken is what a late answer says.
func taken(reference string) provider.Receipt {
	return provider.Receipt{Reference: reference, Key: "ours", State: provider.Pending}
}

// TestWhatNobodySendsAgainIsKeptUntilItIsBooked, while a receipt is given back to its provider.
func TestWhatNobodySendsAgainIsKeptUntilItIsBooked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := &journalStore{away: time.Minute}
		d, _, stop := batcher(t, books)
		defer stop()
		answers := make(chan bool, 1)
		d.Take("smsc", delivered("under way"), func(bool) {})
		// of the bubble: the first is being booked, the others stand behind it
		<-time.After(time.Second)
		d.Keep("smsc", taken("late"))
		d.Take("smsc", delivered("given back"), func(ok bool) { answers <- ok })
		if <-answers {
			t.Error("a receipt was taken though it could not be booked")
		}
		<-time.After(2 * time.Minute) // of the bubble
		if !books.has("late") || books.has("given back") {
			t.Errorf("the late answer is booked: %t, the receipt that was given back: %t",
				books.has("late"), books.has("given back"))
		}
	})
}

// TestWhatIsKeptIsBounded, beyond the room that receipts have, and what is lost is counted.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, registry, stop := batcher(t, &journalStore{away: time.Hour})
		defer stop()
		d.Keep("smsc", taken("under way"))
		<-time.After(time.Second) // of the bubble: the first is being booked
		const kept, lost = 30_000, 10
		for range kept + lost {
			d.Keep("smsc", taken("late"))
		}
		if n := count(t, registry, "dispatcher_provider_receipts_total", "smsc",
			"lost"); n != lost {
			t.Errorf("%v late answers are lost, want %d", n, lost)
		}
		refused := make(chan bool, 1)
		d.Take("smsc", delivered("r"), func(ok bool) { refused <- !ok })
		if !<-refused {
			t.Error("a receipt took the room of what nobody sends again")
		}
	})
}
