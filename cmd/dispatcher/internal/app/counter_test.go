package app

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/selector"
)

const vendors = `
channels:
  telnyx: {provider: telnyx, settings: {api_key_file: key, from: "+14155550100"}, price: {currency: EUR, default: "0.04"}}
  twilio: {provider: twilio, settings: {account_sid: x}, price: {currency: EUR, default: "0.04"}}
routes:
  - {name: short, match: {tenant: short}, weights: {telnyx: 1, twilio: 0}, max_segments: 1}
  - {name: all, weights: {telnyx: 1, twilio: 0}}
`

func TestATextIsCountedInTheAlphabetOfTheVendorThatGetsIt(t *testing.T) {
	t.Parallel()
	routing, err := Compile(versionOf(t, vendors, ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tenant, text, channel string
		segments              int
	}{
		{"", strings.Repeat("x", 149) + "$", "telnyx", 1},
		{"", strings.Repeat("x", 149) + "€", "telnyx", 3}, // UCS-2 there, 150 units; 151 septets elsewhere
		{"short", strings.Repeat("x", 149) + "€", "twilio", 1},
	} {
		a := dispatch.Explain(&dispatch.Question{
			Routing: routing, Keys: []selector.Key{{1}}, Now: autumn,
			Job: dispatch.Job{Lane: "bulk", Produced: autumn, Message: envelope.Message{ID: "m-1", To: "+447400123456", Tenant: c.tenant, Text: c.text}},
		})
		if got := a.Decision.Attempt; a.Problem != nil || got.Channel != c.channel || got.Segments != c.segments {
			t.Errorf("%s: %d segments on %s, want %d on %s (%v)", c.text[len(c.text)-3:], got.Segments, got.Channel, c.segments, c.channel, a.Problem)
		}
	}
}
