package inbound

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/ledger"
)

// testDirectory has a number, a short code with its own keywords, and a channel.
func testDirectory() *Directory {
	return NewDirectory(&config.Inbound{
		Keywords: config.Keywords{Stop: []string{"STOP", "END"}, Start: []string{"START"}},
		Numbers: []config.InboundSource{
			{Name: "+15550100", Tenant: "shop"},
			{Name: "12345", Tenant: "bank", Keywords: config.Keywords{
				Stop:  []string{"HALT"},
				Start: []string{"GO"},
			}},
		},
		Channels: []config.InboundSource{{Name: "b", Tenant: "news"}},
	})
}

func TestANumberTakesPrecedenceOverAChannel(t *testing.T) {
	t.Parallel()
	d := testDirectory()
	for _, c := range []struct{ channel, to, tenant string }{
		{"a", "+15550100", "shop"},
		{"a", "15550100", "shop"},
		{"b", " +15550100", "shop"},
		{"b", "12345", "bank"},
		{"b", "+15550199", "news"},
		{"a", "+15550199", ""},
		{"a", "", ""},
	} {
		if got := d.owner(c.channel, c.to).tenant; got != c.tenant {
			t.Errorf("%s on %s belongs to %q, want %q", c.to, c.channel, got, c.tenant)
		}
	}
}

func TestOnlyAWholeMessageIsAKeyword(t *testing.T) {
	t.Parallel()
	d := testDirectory()
	for _, c := range []struct {
		to, text string
		missing  []int
		want     ledger.Change
	}{
		{to: "+15550100", text: "stop", want: ledger.OptOut},
		{to: "+15550100", text: " Stop.\n", want: ledger.OptOut},
		{to: "+15550100", text: "End", want: ledger.OptOut},
		{to: "+15550100", text: "START", want: ledger.OptIn},
		{to: "+15550100", text: "please stop"},
		{to: "+15550100", text: "stop it"},
		{to: "+15550100", text: "stopp"},
		{to: "+15550100", text: ""},
		{to: "+15550100", text: "..."},
		{to: "+15550100", text: "halt"},
		{to: "+15550100", text: "stop", missing: []int{1}},
		{to: "+15550100", text: "stop" + strings.Repeat(".", 1000)},
		{to: "12345", text: "halt", want: ledger.OptOut},
		{to: "12345", text: "go", want: ledger.OptIn},
		{to: "12345", text: "stop"},
	} {
		m := ledger.Subscribed{
			Channel: "a", From: "+447700900123", To: c.to, Text: c.text,
			Missing: c.missing,
		}
		if got := d.owner(m.Channel, m.To).change(&m); got != c.want {
			t.Errorf("%q to %s without parts %v: %d, want %d", c.text, c.to, c.missing, got, c.want)
		}
	}
	unknown := ledger.Subscribed{To: "+15550100", Text: "stop"}
	if got := d.owner("a", unknown.To).change(&unknown); got != ledger.NoChange {
		t.Error("a message without sender changes a list")
	}
}

// TestAnotherChannelChangesNoListOfANumberWithChannels: whoever owns a channel can write any sender
// and any number of ours, and so must not reach the lists of other tenants.
func TestAnotherChannelChangesNoListOfANumberWithChannels(t *testing.T) {
	t.Parallel()
	d := NewDirectory(&config.Inbound{
		Keywords: config.Keywords{Stop: []string{"STOP"}, Start: []string{"START"}},
		Numbers:  []config.InboundSource{{Name: "+15550100", Tenant: "shop", Channels: []string{"a"}}},
		Channels: []config.InboundSource{{Name: "b", Tenant: "news"}},
	})
	for channel, want := range map[string]ledger.Change{"a": ledger.OptOut, "b": ledger.NoChange} {
		got := d.react(&ledger.Subscribed{
			ID: "i", Channel: channel, From: "+447700900123", To: "+15550100", Text: "Stop",
		})
		if got.Change != want || got.Tenant != "shop" {
			t.Errorf("over %s: change %d of %s, want %d of shop", channel, got.Change, got.Tenant, want)
		}
		starts := d.starts(&ledger.Inbound{
			Channel: channel, From: "+447700900123", To: "+15550100", Text: "Start",
		})
		if starts != (channel == "a") {
			t.Errorf("over %s: a START would take the sender off the list: %t", channel, starts)
		}
	}
}

func TestARecordSaysWhoseItIsAndWhatItChanged(t *testing.T) {
	t.Parallel()
	m := ledger.Subscribed{
		ID: "i", Channel: "a", From: "+447700900123", To: "+15550100", Text: "Stop!", Parts: 2,
		At: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
	want := ledger.Reaction{
		Change: ledger.OptOut, Tenant: "shop", Key: "+447700900123",
		Value: []byte(`{"id":"i","channel":"a","from":"+447700900123","to":"+15550100","text":"Stop!","tenant":"shop",` +
			`"received_at":"2026-11-21T10:00:00.000000Z","parts":2,"keyword":"stop"}`),
	}
	if diff := cmp.Diff(want, testDirectory().react(&m)); diff != "" {
		t.Error(diff)
	}
}
