package smpp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

func TestSendersGetTheirTypeOfNumber(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]pdu.Address{
		"ACME":                  {TON: 5, NPI: 0, Addr: "ACME"},
		"Acme 24h":              {TON: 5, NPI: 0, Addr: "Acme 24h"},
		"12345":                 {TON: 3, NPI: 0, Addr: "12345"},
		"12345678":              {TON: 3, NPI: 0, Addr: "12345678"},
		"447700900123":          {TON: 1, NPI: 1, Addr: "447700900123"},
		"+447700900123":         {TON: 1, NPI: 1, Addr: "447700900123"},
		"+12345":                {TON: 1, NPI: 1, Addr: "12345"},
		"":                      {},
		"TwelveLetter":          {Addr: "!"},
		"Ünal":                  {Addr: "!"},
		"A\x00B":                {Addr: "!"},
		strings.Repeat("1", 21): {Addr: "!"},
	} {
		got, err := (&Config{}).source(from)
		if want.Addr == "!" {
			if err == nil || codeOf(err) != "source" {
				t.Errorf("%q: %+v, %v; want a fault", from, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", from, got, err, want)
		}
	}
}

func TestSettingsOverrideTheTypeOfNumber(t *testing.T) {
	t.Parallel()
	ton, npi := byte(2), byte(8)
	cfg := &Config{From: "ACME", SourceTON: &ton, DestNPI: &npi}
	if got, err := cfg.source(""); err != nil ||
		got != (pdu.Address{TON: 2, NPI: 0, Addr: "ACME"}) {
		t.Errorf("source %+v, %v", got, err)
	}
	if got, err := cfg.destination("+447700900123"); err != nil ||
		got != (pdu.Address{TON: 1, NPI: 8, Addr: "447700900123"}) {
		t.Errorf("destination %+v, %v", got, err)
	}
}

func TestDestinationsThatAreNoNumbersAreFaults(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"", "+", "ACME", "+44 7700", "+" + strings.Repeat("4", 21)} {
		if _, err := (&Config{}).destination(to); codeOf(err) != "destination" {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// frames encodes a submission and decodes the frames.
func frames(t rapid.TB, cfg Config, s provider.Submission) []pdu.Message {
	t.Helper()
	p, err := cfg.plan(s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out []pdu.Message
	c := new(call)
	for i := range p.parts() {
		if err := p.encode(c, i); err != nil {
			t.Fatal(err)
		}
		_, body, err := pdu.Decode(c.frame)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, body.(*pdu.SubmitSM).Clone())
	}
	return out
}

func TestAlphabetFollowsTheChannelsSetting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		alphabet Alphabet
		text     string
		coding   byte
		octets   string
	}{
		"gsm7":                    {GSM7, "@£é{", 0, "\x00\x01\x05\x1b\x28"},
		"gsm7 needs ucs2":         {GSM7, "ç", 8, "\x00\xe7"},
		"latin1":                  {Latin1, "@£é{", 0, "@\xa3\xe9{"},
		"latin1 lacks the euro":   {Latin1, "€1", 8, "\x20\xac\x001"},
		"ascii":                   {ASCII, "a@{", 0, "a@{"},
		"ascii lacks the pound":   {ASCII, "£", 8, "\x00\xa3"},
		"surrogates are a pair":   {GSM7, "😀", 8, "\xd8\x3d\xde\x00"},
		"invalid utf-8 is marked": {GSM7, "\xff", 8, "\xff\xfd"},
		"empty":                   {GSM7, "", 0, ""},
	} {
		got := frames(t, Config{Alphabet: c.alphabet}, provider.Submission{To: "+44", Text: c.text})
		if len(got) != 1 || got[0].DataCoding != c.coding ||
			string(got[0].ShortMessage) != c.octets {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEachWayOfConcatenationHasItsHeader(t *testing.T) {
	t.Parallel()
	s := provider.Submission{To: "+44", Text: strings.Repeat("x", 161), Reference: 0x1234}
	for way, want := range map[LongMessages]string{
		UDH8: "\x05\x00\x03\x34\x02\x02xxxxxxxx", UDH16: "\x06\x08\x04\x12\x34\x02\x02xxxxxxxxx",
		SAR: "xxxxxxxx",
	} {
		got := frames(t, Config{LongMessages: way}, s)
		if len(got) != 2 || string(got[1].ShortMessage) != want {
			t.Errorf("way %d: %d parts, the last %q", way, len(got), got[len(got)-1].ShortMessage)
			continue
		}
		if hasHeader := got[0].ESMClass&pdu.ESMClassUDHI != 0; hasHeader == (way == SAR) {
			t.Errorf("way %d: esm_class 0x%02x", way, got[0].ESMClass)
		}
	}
	sar := frames(t, Config{LongMessages: SAR}, s)[1].TLVs
	want := pdu.TLVs{
		pdu.Uint16(pdu.TagSARMsgRefNum, 0x34), pdu.Uint8(pdu.TagSARTotalSegments, 2),
		pdu.Uint8(pdu.TagSARSegmentSeqnum, 2),
	}
	if diff := cmp.Diff(want, sar); diff != "" {
		t.Error(diff)
	}
	payload := frames(t, Config{LongMessages: MessagePayload}, s)
	if len(payload) != 1 || len(payload[0].ShortMessage) != 0 ||
		string(payload[0].Payload()) != s.Text {
		t.Errorf("message_payload: %+v", payload)
	}
	short := frames(t, Config{LongMessages: MessagePayload},
		provider.Submission{To: "+44", Text: "short"})
	if string(short[0].ShortMessage) != "short" || len(short[0].TLVs) != 0 {
		t.Errorf("a short text in message_payload mode: %+v", short)
	}
}

func TestOnlyThePartsAskedForAreEncoded(t *testing.T) {
	t.Parallel()
	s := provider.Submission{To: "+44", Text: strings.Repeat("x", 400), Parts: []int{0, 2}}
	s.Cut = (&Config{}).Cut(s.Text)
	for _, way := range []LongMessages{UDH8, MessagePayload} {
		got := frames(t, Config{LongMessages: way}, s)
		if len(got) != 2 || got[0].ShortMessage[5] != 1 || got[1].ShortMessage[5] != 3 {
			t.Errorf("way %d: %d parts", way, len(got))
		}
	}
	for _, parts := range [][]int{{3}, {-1}, {1, 1}, {2, 0}, {}} {
		s.Parts = parts
		if _, err := (&Config{}).plan(s, time.Now()); codeOf(err) != "parts" {
			t.Errorf("parts %v: %v", parts, err)
		}
	}
	s.Text, s.Parts, s.Cut = "short", []int{1}, (&Config{}).Cut("short")
	if _, err := (&Config{}).plan(s, time.Now()); codeOf(err) != "parts" {
		t.Errorf("part 1 of a whole message: %v", err)
	}
}

func TestTextsBeyondTheProtocolAreFaults(t *testing.T) {
	t.Parallel()
	s := provider.Submission{To: "+44", Text: strings.Repeat("x", 153*255+1)}
	if _, err := (&Config{}).plan(s, time.Now()); codeOf(err) != "too_long" {
		t.Errorf("256 segments: %v", err)
	}
	s.Text = strings.Repeat("x", pdu.MaxSize)
	p, err := (&Config{LongMessages: MessagePayload}).plan(s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := new(call)
	if err := p.encode(c, 0); codeOf(err) != "too_long" {
		t.Errorf("64 KiB of payload: %v", err)
	}
}

func TestValidityIsWrittenInTheChannelsFormat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		cfg   Config
		until time.Time
		want  string
	}{
		"none":     {Config{}, time.Time{}, ""},
		"absolute": {Config{}, now.Add(time.Hour), "261121110000000+"},
		"relative": {
			Config{ValidityFormat: Relative}, now.Add(90 * time.Second), "000000000130000R",
		},
	} {
		if got, err := c.cfg.validityPeriod(&provider.Submission{Validity: c.until},
			now); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := (&Config{}).validityPeriod(&provider.Submission{Validity: now},
		now); codeOf(err) != "expired" {
		t.Errorf("in the past: %v", err)
	}
}

// TestSplitUCS2CutsLikePackageSMS compares both on texts that both can split.
func TestSplitUCS2CutsLikePackageSMS(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abÄΔ€ [")), 0, 300, -1).Draw(t, "text")
		reference := rapid.SampledFrom([]sms.Reference{sms.Reference8, sms.Reference16}).Draw(t,
			"reference")
		got := splitUCS2(text, reference)
		marked := sms.Split(strings.Map(func(rune) rune { return 'ж' }, text), reference).Segments
		if strings.Join(got, "") != text || len(got) != len(marked) {
			t.Fatalf("%d segments, want %d", len(got), len(marked))
		}
		for i := range got {
			if utf8.RuneCountInString(got[i]) != utf8.RuneCountInString(marked[i]) {
				t.Fatalf("segment %d has another length", i)
			}
		}
	})
}

func TestTheFirstRuleThatFitsWritesTheSender(t *testing.T) {
	t.Parallel()
	cfg := &Config{From: "ACME", SourceNPI: new(byte(9)), SourceRules: []SourceRule{
		{To: []string{"1", "52"}, Kind: Alphanumeric, From: "18005550100"},
		{To: []string{"1"}, Kind: ShortCode, TON: new(byte(6))},
		{
			To: []string{"44"}, Kind: NamedSender, Sender: "Acme*", From: "AcmeUK",
			TON: new(byte(5)), NPI: new(byte(1)),
		},
		{Kind: NamedSender, Sender: "PROMO", From: "60777"},
		{Kind: Number, TON: new(byte(2))},
	}}
	for _, c := range []struct {
		from, to string
		want     pdu.Address
	}{
		// the channel's own sender is alphanumeric
		{"", "+12125550100", pdu.Address{TON: 1, NPI: 9, Addr: "18005550100"}},
		{"Other", "+525512345678", pdu.Address{TON: 1, NPI: 9, Addr: "18005550100"}},
		{"60777", "+12125550100", pdu.Address{TON: 6, NPI: 9, Addr: "60777"}},
		{"Acme 24h", "+447700900123", pdu.Address{TON: 5, NPI: 1, Addr: "AcmeUK"}},
		{"Acm", "+447700900123", pdu.Address{TON: 5, NPI: 9, Addr: "Acm"}},
		{"PROMO", "+33612345678", pdu.Address{TON: 3, NPI: 9, Addr: "60777"}},
		{"+447700900999", "+33612345678", pdu.Address{TON: 2, NPI: 9, Addr: "447700900999"}},
		{"60888", "+33612345678", pdu.Address{TON: 3, NPI: 9, Addr: "60888"}},
	} {
		if got, err := cfg.sourceBy(cfg.sourceRule(c.from, c.to), c.from); err != nil || got != c.want {
			t.Errorf("%q to %s: %+v, %v; want %+v", c.from, c.to, got, err, c.want)
		}
	}
	none := &Config{SourceRules: []SourceRule{{Kind: NoSender, From: "60777"}}}
	if got, _ := none.sourceBy(none.sourceRule("", "+44"), ""); got.Addr != "60777" {
		t.Errorf("no sender: %+v", got)
	}
	const long = "far too long a name"
	if _, err := cfg.sourceBy(cfg.sourceRule(long, "+44"), long); codeOf(err) != "source" {
		t.Errorf("an alphanumeric sender that no rule replaces: %v", err)
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
