package app

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/smpptest"
)

// channelOf is a channel of a routing document with those settings of an SMSC beside its address.
func channelOf(t *testing.T, address, more string) *config.Channel {
	t.Helper()
	doc, err := config.ParseRouting("r", []byte(
		`channels: {a: {provider: smpp, settings: {address: "`+address+`", system_id: me`+more+"}}}\nroutes: [{name: r, weights: {a: 1}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &doc.Channels[0]
}

func TestAResponseTimeoutThatTheSendTimeoutCutsShortIsTold(t *testing.T) {
	t.Parallel()
	for more, told := range map[string]bool{
		"": false, ", response_timeout: 9999ms": false, ", response_timeout: 10s": true, ", response_timeout: 1m": true,
		", response_timeout: soon": false, // is an error elsewhere
	} {
		words := Overlong(channelOf(t, "127.0.0.1:1", more), 10*time.Second)
		if (words != "") != told || told && !strings.Contains(words, "DISPATCHER_SEND_TIMEOUT of 10s") {
			t.Errorf("%q: %q", more, words)
		}
	}
	if words := Overlong(&config.Channel{Provider: "sandbox"}, time.Nanosecond); words != "" {
		t.Errorf("a sandbox: %q", words)
	}
}

// TestTheDefaultsOfBothTimeoutsWorkTogether: no answer is waited for longer than its sender waits.
func TestTheDefaultsOfBothTimeoutsWorkTogether(t *testing.T) {
	t.Setenv("DISPATCHER_POSTGRES_URL", "postgres://127.0.0.1/none")
	s, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	if smpp.DefaultResponseTimeout >= s.SendTimeout {
		t.Errorf("response_timeout of %s, DISPATCHER_SEND_TIMEOUT of %s", smpp.DefaultResponseTimeout, s.SendTimeout)
	}
}

// TestConnectingTellsOfAnOverlongTimeout once, in the log of the process.
func TestConnectingTellsOfAnOverlongTimeout(t *testing.T) {
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
			t.Errorf("%q was told %d times, want %d: %s", more, n, want, log.String())
		}
	}
}
