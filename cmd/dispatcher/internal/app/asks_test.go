package app

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// TestAChannelAsksForReceiptsThatSomebodyWaitsForAlone.
func TestAChannelAsksForReceiptsThatSomebodyWaitsForAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more     string
		receipts config.Receipts
		want     bool
	}{
		"by default":         {"", config.Receipts{}, true},
		"none expected":      {"", config.Receipts{None: true}, false},
		"none, but set":      {", registered_delivery: 17", config.Receipts{None: true}, false},
		"expected all along": {", registered_delivery: none", config.Receipts{Within: time.Hour}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan bool, 1)
			carrier, err := smpptest.Start(smpptest.Config{OnSubmit: func(s smpptest.Submit) { asked <- s.Receipt }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(carrier.Close)
			channel := channelOf(t, carrier.Addr(), c.more)
			channel.Receipts = c.receipts
			opened, err := (&connector{log: zerolog.Nop()}).adapter(channel, newChannelHealth(channel.Name, zerolog.Nop(), nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close(t.Context()) })
			for {
				r := opened.Send(t.Context(), provider.Submission{ID: "m", Attempt: 1, To: "+447700900123", From: "ACME", Text: "hello"})
				if r.Outcome == provider.Accepted {
					break
				}
				<-time.After(time.Millisecond) // not bound yet
			}
			if got := <-asked; got != c.want {
				t.Errorf("a receipt was asked for: %t, want %t", got, c.want)
			}
		})
	}
}
