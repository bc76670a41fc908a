package smpp

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// TestWhatTheChannelWritesIsNotTheMessagesOwn: a type that a setting or a rule fixes, a sender that a rule or the routing
// document puts in place of the message's.
func TestWhatTheChannelWritesIsNotTheMessagesOwn(t *testing.T) {
	t.Parallel()
	octet := new(byte(1))
	france := []string{"33"}
	whole := ownAddress{sender: true, ton: true, npi: true}
	for name, c := range map[string]struct {
		cfg  Config
		want ownAddress
	}{
		"its own":                      {want: whole},
		"the channel has another":      {cfg: Config{From: "Other"}, want: whole},
		"the channel has the same":     {cfg: Config{From: "ACME"}},
		"the setting source_ton":       {cfg: Config{SourceTON: octet}, want: ownAddress{sender: true, npi: true}},
		"the setting source_npi":       {cfg: Config{SourceNPI: octet}, want: ownAddress{sender: true, ton: true}},
		"the recipient's have no say":  {cfg: Config{DestTON: octet, DestNPI: octet}, want: whole},
		"a rule with another":          {cfg: Config{SourceRules: []SourceRule{{From: "Other"}}}},
		"a rule with a type":           {cfg: Config{SourceRules: []SourceRule{{TON: octet}}}, want: ownAddress{sender: true, npi: true}},
		"a rule with a plan":           {cfg: Config{SourceRules: []SourceRule{{NPI: octet}}}, want: ownAddress{sender: true, ton: true}},
		"a rule for others":            {cfg: Config{SourceRules: []SourceRule{{Kind: Number, From: "Other"}}}, want: whole},
		"a rule for other recipients":  {cfg: Config{SourceRules: []SourceRule{{To: france, From: "Other"}}}, want: whole},
		"the first rule that fits has": {cfg: Config{SourceRules: []SourceRule{{Kind: Alphanumeric}, {From: "Other"}}}, want: whole},
	} {
		s := provider.Submission{From: "ACME", OwnSender: true, To: "+447700900123", Text: "x"}
		p, err := c.cfg.plan(s, time.Now())
		if err != nil || p.source != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, p.source, err, c.want)
		}
	}
	for name, s := range map[string]provider.Submission{"the routing document's": {From: "ACME"}, "none": {OwnSender: true}} {
		if got := (&Config{From: "Other"}).ownAddressOf(nil, &s); got != (ownAddress{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestASenderIsTheChannelsWithAndWithoutAPlus: the wire has no plus.
func TestASenderIsTheChannelsWithAndWithoutAPlus(t *testing.T) {
	t.Parallel()
	for _, channels := range []string{"447700900111", "+447700900111"} {
		for from, want := range map[string]bool{"447700900111": false, "+447700900111": false, "447700900112": true} {
			s := provider.Submission{From: from, OwnSender: true, To: "+447700900123", Text: "x"}
			if got := (&Config{From: channels}).ownAddressOf(nil, &s); got.sender != want {
				t.Errorf("%s on a channel of %s: own %v", from, channels, got.sender)
			}
		}
	}
}

// TestAStatusIsAboutItsOwnPartOfTheSource and about nothing else.
func TestAStatusIsAboutItsOwnPartOfTheSource(t *testing.T) {
	t.Parallel()
	parts := map[pdu.Status]ownAddress{
		pdu.StatusInvSrcAdr: {sender: true}, pdu.StatusInvSrcTON: {ton: true}, pdu.StatusInvSrcNPI: {npi: true},
	}
	for _, s := range append(pdu.Statuses(), 0x410) {
		for about, o := range parts {
			if got := o.blamedBy(s); got != (s == about) {
				t.Errorf("%v of %+v: %v", s, o, got)
			}
		}
		if (ownAddress{}).blamedBy(s) {
			t.Errorf("%v of what is not the message's", s)
		}
	}
}
