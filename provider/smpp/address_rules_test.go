package smpp

import (
	"strings"
	"testing"

	"dispatcher/provider/smpp/pdu"
)

func TestTheFirstRuleThatFitsWritesTheSender(t *testing.T) {
	t.Parallel()
	cfg := &Config{From: "ACME", SourceNPI: new(byte(9)), SourceRules: []SourceRule{
		{To: []string{"1", "52"}, Kind: Alphanumeric, From: "18005550100"},
		{To: []string{"1"}, Kind: ShortCode, TON: new(byte(6))},
		{To: []string{"44"}, Kind: NamedSender, Sender: "Acme*", From: "AcmeUK", TON: new(byte(5)), NPI: new(byte(1))},
		{Kind: NamedSender, Sender: "PROMO", From: "60777"},
		{Kind: Number, TON: new(byte(2))},
	}}
	for _, c := range []struct {
		from, to string
		want     pdu.Address
	}{
		{"", "+12125550100", pdu.Address{TON: 1, NPI: 9, Addr: "18005550100"}}, // the channel's own sender is a name
		{"Other", "+525512345678", pdu.Address{TON: 1, NPI: 9, Addr: "18005550100"}},
		{"60777", "+12125550100", pdu.Address{TON: 6, NPI: 9, Addr: "60777"}},
		{"Acme 24h", "+447700900123", pdu.Address{TON: 5, NPI: 1, Addr: "AcmeUK"}},
		{"Acm", "+447700900123", pdu.Address{TON: 5, NPI: 9, Addr: "Acm"}},
		{"PROMO", "+33612345678", pdu.Address{TON: 3, NPI: 9, Addr: "60777"}},
		{"+447700900999", "+33612345678", pdu.Address{TON: 2, NPI: 9, Addr: "447700900999"}},
		{"60888", "+33612345678", pdu.Address{TON: 3, NPI: 9, Addr: "60888"}},
	} {
		if got, err := cfg.sourceTo(c.from, c.to); err != nil || got != c.want {
			t.Errorf("%q to %s: %+v, %v; want %+v", c.from, c.to, got, err, c.want)
		}
	}
	none := &Config{SourceRules: []SourceRule{{Kind: NoSender, From: "60777"}}}
	if got, _ := none.sourceTo("", "+44"); got.Addr != "60777" {
		t.Errorf("no sender: %+v", got)
	}
	if _, err := cfg.sourceTo("far too long a name", "+44"); codeOf(err) != "source" {
		t.Errorf("a name that no rule mends: %v", err)
	}
}

func TestTheFirstRuleThatFitsWritesTheRecipient(t *testing.T) {
	t.Parallel()
	national, nothing, plus := "0", "", "+"
	cfg := &Config{DestNPI: new(byte(8)), DestRules: []DestRule{
		{To: []string{"4477"}, TON: new(byte(4))},
		{To: []string{"49", "44"}, Replace: &national, TON: new(byte(2)), NPI: new(byte(1))},
		{To: []string{"33"}, Replace: &nothing},
		{Replace: &plus},
	}}
	for to, want := range map[string]pdu.Address{
		"+447700900123": {TON: 4, NPI: 8, Addr: "447700900123"},
		"+442071234567": {TON: 2, NPI: 1, Addr: "02071234567"},
		"+33612345678":  {TON: 1, NPI: 8, Addr: "612345678"},
		"+12125550100":  {TON: 1, NPI: 8, Addr: "+12125550100"},
	} {
		if got, err := cfg.destination(to); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", to, got, err, want)
		}
	}
	if _, err := cfg.destination("+33"); codeOf(err) != "destination" {
		t.Errorf("nothing left of a number: %v", err)
	}
	if _, err := cfg.destination("+1" + strings.Repeat("2", 19)); codeOf(err) != "destination" {
		t.Errorf("a number that the plus makes too long: %v", err)
	}
}
