package app

import (
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider/smpp/smpptest"
)

// TestReceiptsOfEveryKindOfChannelFreeTheirSlots: two slots that are held for an hour carry twenty messages,
// because receipts come: from a carrier, from a sandbox, and from a channel that is marked as a test.
func TestReceiptsOfEveryKindOfChannelFreeTheirSlots(t *testing.T) {
	t.Parallel()
	for name, channel := range map[string]string{
		"carrier": "{ONE}", "sandbox": "provider: sandbox", "test": "provider: sandbox, test: true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, strings.Replace(oneChannel, "{{ONE}}", "{"+channel+", active: {max: 2, until: receipt, hold: 1h}}", 1))
			if name == "carrier" {
				s.carrier("ONE").SetBehaviour(smpptest.Behaviour{Receipts: true})
			}
			s.publish(20)
			s.until("all messages delivered", func() bool { return s.totals().Messages[ledger.Delivered] == 20 })
		})
	}
}

// TestAChannelAsksForReceiptsOnceItHoldsSlots: the change of a routing document makes a new connection, since an
// earlier one asked for none.
func TestAChannelAsksForReceiptsOnceItHoldsSlots(t *testing.T) {
	t.Parallel()
	const channel = `
channels: {a: {%, settings: {address: "{ADDRESS}", system_id: me, registered_delivery: none}, active: {max: 2#}}}
routes: [{name: default, weights: {a: 1}}]
`
	carrier, err := smpptest.Start(smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Receipts: true, ReceiptDelay: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	document := strings.NewReplacer("%", "provider: smpp", "{ADDRESS}", carrier.Addr()).Replace(channel)
	s := newStage(t, strings.Replace(document, "#", "", 1))
	s.publish(5)
	s.until("five messages accepted", func() bool { return s.totals().Messages[ledger.Accepted] == 5 })
	s.apply(strings.Replace(document, "#", ", until: receipt, hold: 1h", 1))
	s.until("the new connection", func() bool { return carrier.Stats().Unbinds == 1 })
	s.publish(20)
	s.until("all others delivered", func() bool { return s.totals().Messages[ledger.Delivered] == 20 })
	for i, submit := range carrier.Submits() {
		if submit.Receipt != (i >= 5) {
			t.Errorf("submit %d asks for a receipt: %t", i, submit.Receipt)
		}
	}
}
