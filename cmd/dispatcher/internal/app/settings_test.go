package app

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

func TestReceiptsAreExpectedWhereTheyCome(t *testing.T) {
	t.Parallel()
	const smsc = `provider: smpp, settings: {address: "127.0.0.1:1", system_id: me%}`
	for channel, want := range map[string]time.Duration{
		strings.Replace(smsc, "%", "",
			1): 72 * time.Hour,
		strings.Replace(smsc, "%", "", 1) + ", receipts: {within: 90s}": 90 * time.Second,
		strings.Replace(smsc, "%", "", 1) + ", receipts: none":          0,
		strings.Replace(smsc, "%", ", registered_delivery: none",
			1): 0,
		strings.Replace(smsc, "%", ", registered_delivery: none", 1) +
			", receipts: {within: 1h}": time.Hour,
		strings.Replace(smsc, "%", ", registered_delivery: none", 1) + ", active: {max: 1, " +
			"until: receipt}": 72 * time.Hour,
		"provider: sandbox":                                             0,
		"provider: sandbox, receipts: {within: 1h}":                     time.Hour,
		"provider: sandbox, active: {max: 1, until: receipt, hold: 1m}": 72 * time.Hour,
		"provider: sandbox, test: true":                                 72 * time.Hour,
		"provider: sandbox, test: true, receipts: none":                 0,
	} {
		doc, err := config.ParseRouting("r",
			[]byte("channels: {a: {"+channel+"}}\nroutes: [{name: r, weights: {a: 1}}]\n"))
		if err != nil {
			t.Errorf("%s: got error %v", channel, err)
			continue
		}
		compiled, err := Compile(doc, 1)
		if err != nil || compiled.Channels[0].AwaitReceipts != want {
			t.Errorf("%s: receipts are expected for %s, want %s (%v)", channel,
				compiled.Channels[0].AwaitReceipts, want, err)
		}
	}
}

// channelOf returns an SMPP channel with the address and further settings.
func channelOf(t *testing.T, address, more string) *config.Channel {
	t.Helper()
	doc, err := config.ParseRouting("r", []byte(
		`channels: {a: {provider: smpp, settings: {address: "`+address+`", system_id: me`+more+
			"}}}\nroutes: [{name: r, weights: {a: 1}}]\n",
	))
	if err != nil {
		t.Fatal(err)
	}
	return &doc.Channels[0]
}

func TestAResponseTimeoutWithoutEffectIsReported(t *testing.T) {
	t.Parallel()
	for more, warned := range map[string]bool{
		"": false, ", response_timeout: 9999ms": false, ", response_timeout: 10s": true,
		", response_timeout: 1m":   true,
		", response_timeout: soon": false, // reported elsewhere
	} {
		words := Overlong(channelOf(t, "127.0.0.1:1", more), 10*time.Second)
		if (words != "") != warned ||
			warned && !strings.Contains(words, "DISPATCHER_SEND_TIMEOUT of 10s") {
			t.Errorf("%q: got %q", more, words)
		}
	}
	if words := Overlong(&config.Channel{Provider: "sandbox"}, time.Nanosecond); words != "" {
		t.Errorf("a sandbox: %q", words)
	}
}

// TestTheDefaultsOfBothTimeoutsWorkTogether: the response timeout ends before the send timeout.
func TestTheDefaultsOfBothTimeoutsWorkTogether(t *testing.T) {
	t.Setenv("DISPATCHER_POSTGRES_URL", "postgres://127.0.0.1/none")
	s, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	if smpp.DefaultResponseTimeout >= s.SendTimeout {
		t.Errorf("response_timeout of %s, DISPATCHER_SEND_TIMEOUT of %s",
			smpp.DefaultResponseTimeout, s.SendTimeout)
	}
}

// TestConnectingWarnsOfAResponseTimeoutWithoutEffect: once, in the log of the process.
func TestConnectingWarnsOfAResponseTimeoutWithoutEffect(t *testing.T) {
	t.Parallel()
	carrier, err := smpptest.Start(smpptest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	for more, want := range map[string]int{"": 0, ", response_timeout: 1m": 1} {
		var log strings.Builder
		c := connector{log: zerolog.New(zerolog.SyncWriter(&log)), sendTimeout: 10 * time.Second}
		channel := channelOf(t, carrier.Addr(), more)
		adapter, err := c.adapter(channel, newChannelHealth(channel.Name, zerolog.Nop(), nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := adapter.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "has no effect"); n != want {
			t.Errorf("%q: logged %d times, want %d: %s", more, n, want, log.String())
		}
	}
}

// TestOnlyChannelsThatSendPartsSayHowTheyCut: the rest of a message is sent only while the channel
// splits texts in the same way. Another kind of provider counts as another way.
func TestOnlyChannelsThatSendPartsSayHowTheyCut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 40) + "£"
	cuts := map[string]string{}
	for name, channel := range map[string]config.Channel{
		"smpp": {Provider: "smpp", Settings: map[string]any{"address": "a:1", "system_id": "x"}},
		"elsewhere": {
			Provider: "smpp",
			Settings: map[string]any{
				"address": "b:1", "system_id": "y", "window": 5,
				"key_tlv": "0x1400",
			},
		},
		"ascii": {
			Provider: "smpp",
			Settings: map[string]any{"address": "a:1", "system_id": "x", "alphabet": "ascii"},
		},
		"sandbox": {Provider: "sandbox"},
		"twilio":  {Provider: "twilio"},
		"a trial": {
			Provider: "smpp", Test: true,
			Settings: map[string]any{"address": "a:1", "system_id": "x"},
		},
		"a trial's sandbox": {Provider: "sandbox", Test: true},
	} {
		var got decide.Channel
		if adapt(&channel, &got); got.Cut != nil {
			cuts[name] = got.Cut(text)
		}
	}
	if len(cuts) != 4 || cuts["smpp"] == "" || cuts["smpp"] != cuts["elsewhere"] ||
		cuts["smpp"] == cuts["ascii"] ||
		cuts["smpp"] == cuts["sandbox"] {
		t.Errorf("got %q", cuts)
	}
}

func TestATestChannelFinishesNoMessageThatWasBegunElsewhere(t *testing.T) {
	t.Parallel()
	r := testChannel{
		receipt: func(provider.Receipt, func(bool)) { t.Error("the message was reported as delivered") },
	}.Send(t.Context(), provider.Submission{ID: "m", Attempt: 2, Parts: []int{1}})
	if r.Outcome != provider.Refused || r.Code != provider.Uncomposed {
		t.Errorf("got %+v, want Outcome %v and Code %v", r, provider.Refused, provider.Uncomposed)
	}
}

const vendors = `
channels:
  telnyx: {provider: telnyx, settings: {api_key_file: key, from: "+14155550100"},
    price: {currency: EUR, default: "0.04"}}
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
		// UCS-2 there, 150 units; 151 septets elsewhere
		{"", strings.Repeat("x", 149) + "€", "telnyx", 3},
		{"short", strings.Repeat("x", 149) + "€", "twilio", 1},
	} {
		a := decide.Explain(&decide.ExplainInput{
			Routing: routing, Keys: []selector.Key{{1}}, Now: autumn,
			Job: decide.Job{
				Lane:     "bulk",
				Produced: autumn,
				Message: envelope.Message{
					ID:     "m-1",
					To:     "+447400123456",
					Tenant: c.tenant,
					Text:   c.text,
				},
			},
		})
		if got := a.Decision.Attempt; a.Problem != nil || got.Channel != c.channel ||
			got.Segments != c.segments {
			t.Errorf("%s: %d segments on %s, want %d on %s (%v)", c.text[len(c.text)-3:],
				got.Segments, got.Channel, c.segments, c.channel, a.Problem)
		}
	}
}
