package smpp

import (
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestIDsThatAreLongerThanTheStandardAllows are those of answer and receipt alike; what cannot be an id is none in either.
func TestIDsThatAreLongerThanTheStandardAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ id, want string }{
		"standard":    {strings.Repeat("a", 64), strings.Repeat("a", 64)},
		"longer":      {strings.Repeat("b", 100), strings.Repeat("b", 100)},
		"with blanks": {"id of a message", ""},
		"no text":     {"\x1b[31m7F", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan provider.Receipt, 1)
			srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{Receipts: true, MessageID: func(uint64) string { return c.id }}})
			cfg := fastConfig(srv.Addr())
			cfg.RegisteredDelivery = 1
			cfg.ReceiptID.From = ParameterID
			cfg.OnReceipt = atOnce(func(r provider.Receipt) bool {
				got <- r
				return true
			})
			client := startClient(t, cfg)
			if r := send(client, submission(1)); r.Outcome != provider.Accepted || r.Reference != c.want {
				t.Errorf("answered %+v", r)
			}
			select {
			case r := <-got:
				if r.Reference != c.want {
					t.Errorf("the receipt names %q", r.Reference)
				}
			case <-time.After(testTimeout):
				t.Fatal("no receipt came")
			}
		})
	}
}

func TestTheLongestIDOfAReceipt(t *testing.T) {
	t.Parallel()
	for length, known := range map[int]bool{64: true, 65: true, provider.MaxReference: true, provider.MaxReference + 1: false} {
		m := textReceipt("stat:DELIVRD")
		m.TLVs = pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, strings.Repeat("7", length))}
		r, ok := (&Config{}).parseReceipt(&m, time.Now())
		if !ok || (r.Reference != "") != known {
			t.Errorf("an id of %d characters becomes one of %d", length, len(r.Reference))
		}
	}
}
