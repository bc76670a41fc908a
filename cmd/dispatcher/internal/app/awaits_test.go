package app

import (
	"strings"
	"testing"
	"time"

	"dispatcher/config"
)

func TestReceiptsAreExpectedWhereTheyCome(t *testing.T) {
	t.Parallel()
	const smsc = `provider: smpp, settings: {address: "127.0.0.1:1", system_id: me%}`
	for channel, want := range map[string]time.Duration{
		strings.Replace(smsc, "%", "", 1):                                                                   72 * time.Hour,
		strings.Replace(smsc, "%", "", 1) + ", receipts: {within: 90s}":                                     90 * time.Second,
		strings.Replace(smsc, "%", "", 1) + ", receipts: none":                                              0,
		strings.Replace(smsc, "%", ", registered_delivery: none", 1):                                        0,
		strings.Replace(smsc, "%", ", registered_delivery: none", 1) + ", receipts: {within: 1h}":           time.Hour,
		strings.Replace(smsc, "%", ", registered_delivery: none", 1) + ", active: {max: 1, until: receipt}": 72 * time.Hour,
		"provider: sandbox":                                             0,
		"provider: sandbox, receipts: {within: 1h}":                     time.Hour,
		"provider: sandbox, active: {max: 1, until: receipt, hold: 1m}": 72 * time.Hour,
		"provider: sandbox, test: true":                                 72 * time.Hour,
		"provider: sandbox, test: true, receipts: none":                 0,
	} {
		doc, err := config.ParseRouting("r", []byte("channels: {a: {"+channel+"}}\nroutes: [{name: r, weights: {a: 1}}]\n"))
		if err != nil {
			t.Errorf("%s: %v", channel, err)
			continue
		}
		compiled, err := Compile(doc, 1)
		if err != nil || compiled.Channels[0].AwaitReceipts != want {
			t.Errorf("%s: receipts are expected for %s, want %s (%v)", channel, compiled.Channels[0].AwaitReceipts, want, err)
		}
	}
}
