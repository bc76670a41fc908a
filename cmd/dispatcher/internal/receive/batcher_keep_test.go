package receive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
)

// taken returns the receipt of a late answer.
func taken(reference string) provider.Receipt {
	return provider.Receipt{Reference: reference, Key: "ours", State: provider.Pending}
}

// TestWhatNobodySendsAgainIsKeptUntilItIsStored: a receipt is refused meanwhile, because its
// provider sends it again.
func TestWhatNobodySendsAgainIsKeptUntilItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := &journalStore{away: time.Minute}
		d, _, stop := batcher(t, books)
		defer stop()
		answers := make(chan bool, 1)
		d.Take("smsc", delivered("under way"), func(bool) {})
		// The bubble's clock: the first is being stored, the others wait behind it.
		<-time.After(time.Second)
		d.Keep("smsc", taken("late"))
		d.Take("smsc", delivered("given back"), func(ok bool) { answers <- ok })
		if <-answers {
			t.Error("a receipt was acknowledged although it could not be stored")
		}
		<-time.After(2 * time.Minute) // the bubble's clock
		if !books.has("late") || books.has("given back") {
			t.Errorf("the late answer is stored: %t, the receipt that was given back: %t",
				books.has("late"), books.has("given back"))
		}
	})
}

// TestWhatIsKeptIsBounded: apart from the room for receipts. What is lost is counted.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, registry, stop := batcher(t, &journalStore{away: time.Hour})
		defer stop()
		d.Keep("smsc", taken("under way"))
		<-time.After(time.Second) // the bubble's clock: the first is being stored
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
			t.Error("a receipt took the room of late answers")
		}
	})
}
