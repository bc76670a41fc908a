package smpp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/provider/sms"
)

// TestRemainingPartsAreSentOnlyWithTheSameCut accepts a part, and then changes settings that affect
// the split and settings that do not.
func TestRemainingPartsAreSentOnlyWithTheSameCut(t *testing.T) {
	t.Parallel()
	pound, turkish := strings.Repeat("0123456789", 43)+"£", strings.Repeat("a", 200)+"ş"
	single := sms.LanguagesOf(sms.Turkish)
	for name, c := range map[string]struct {
		before, after Config
		text          string
		same          bool
	}{
		"nothing":                        {Config{}, Config{}, pound, true},
		"another alphabet, other pieces": {Config{}, Config{Alphabet: ASCII}, pound, false},
		// other octets for the same characters
		"another alphabet, the same pieces": {
			Config{}, Config{Alphabet: ASCII}, longText(3), false,
		},
		"Latin-1 for ASCII": {
			Config{Alphabet: Latin1}, Config{Alphabet: ASCII}, longText(3), true,
		},
		"a wider reference":               {Config{}, Config{LongMessages: UDH16}, pound, false},
		"a narrower reference":            {Config{LongMessages: UDH16}, Config{}, pound, false},
		"another header of the same size": {Config{}, Config{LongMessages: SAR}, pound, false},
		"the whole in one, its parts as now": {
			Config{}, Config{LongMessages: MessagePayload}, pound, true,
		},
		"the whole in one, after a wider reference": {
			Config{LongMessages: UDH16}, Config{LongMessages: MessagePayload}, pound, false,
		},
		"a table that the text needs": {
			Config{}, Config{Tables: sms.Tables{Single: single}}, turkish, false,
		},
		"a table less": {
			Config{Tables: sms.Tables{Single: single}}, Config{}, turkish, false,
		},
		"a table that the text has no use for": {
			Config{}, Config{Tables: sms.Tables{Single: single}}, pound, true,
		},
		"the sandbox for a carrier": {Config{Kind: "sandbox"}, Config{}, pound, false},
		"limits, addresses and codings, not cut": {
			Config{},
			Config{Window: 5, Addresses: []string{"b:1"}, DefaultCoding: new(byte(1))},
			pound, true,
		},
	} {
		s := provider.Submission{
			To: "+44", Text: c.text, Parts: []int{1}, Cut: c.before.Cut(c.text),
		}
		_, err := c.after.plan(s, time.Now())
		if same := !errors.Is(err, faultCut); same != c.same || same && err != nil {
			t.Errorf("%s: %q, then %q: %v", name, s.Cut, c.after.Cut(c.text), err)
		}
		s.Parts, s.Cut = nil, "of nothing"
		if _, err := c.after.plan(s, time.Now()); err != nil {
			t.Errorf("%s: the whole message: %v", name, err)
		}
	}
}

func TestRemainingPartsOfAnotherTextAreRefused(t *testing.T) {
	t.Parallel()
	cfg := Config{}
	s := provider.Submission{
		To: "+44", Text: "It's " + longText(3), Parts: []int{2},
		Cut: cfg.Cut("It’s " + longText(3)),
	}
	if _, err := cfg.plan(s, time.Now()); !errors.Is(err, faultCut) {
		t.Errorf("look-alikes were replaced since: %v", err)
	}
	s.Text = "short" // short enough for one part
	s.Parts = []int{0}
	if _, err := cfg.plan(s, time.Now()); !errors.Is(err, faultCut) {
		t.Errorf("one PDU now: %v", err)
	}
}

// TestCutEqualsTheResultOfAWholeAttempt: the pipeline's fingerprint equals that of the wire under
// all settings that affect it.
func TestCutEqualsTheResultOfAWholeAttempt(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		draw := func(name string) *Config {
			return &Config{
				Alphabet: rapid.SampledFrom([]Alphabet{GSM7, Latin1, ASCII}).Draw(t,
					name+" alphabet"),
				LongMessages: rapid.SampledFrom([]LongMessages{
					UDH8, UDH16, SAR, MessagePayload,
				}).Draw(t, name+" way"),
				Tables: sms.Tables{
					Single: rapid.SampledFrom([]sms.Languages{
						0, sms.LanguagesOf(sms.Turkish),
					}).Draw(t, name+" tables"),
				},
			}
		}
		before, after := draw("before"), draw("after")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aş€é[Ω😀")), 150, 600, -1).Draw(t, "text")
		all, err := before.plan(provider.Submission{To: "+44", Text: text}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if all.segments == nil {
			return // it has one part
		}
		if told := all.fingerprint(before); told != before.Cut(text) {
			t.Fatalf("an attempt reports cut %q, the pipeline compares with %q", told, before.Cut(text))
		}
		rest, err := after.plan(
			provider.Submission{To: "+44", Text: text, Parts: []int{1}, Cut: before.Cut(text)},
			time.Now())
		switch {
		case err != nil && !errors.Is(err, faultCut):
			t.Fatal(err)
		case err == nil && (len(rest.segments) != len(all.segments) ||
			rest.segments[1] != all.segments[1]):
			t.Fatalf("part 1 of %d was %q, and is %q of %d", len(all.segments), all.segments[1],
				rest.segments[1], len(rest.segments))
		}
	})
}

// TestAChannelThatCutsDifferentlySendsNoRemainingPart: one part is throttled, the alphabet changes,
// and the rest is submitted.
func TestAChannelThatCutsDifferentlySendsNoRemainingPart(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{
		Log: -1,
		Behaviour: smpptest.Behaviour{Decide: func(s smpptest.Submit) (a smpptest.Answer) {
			if s.Part == 2 {
				a.Status = pdu.StatusThrottled
			}
			return a
		}},
	})
	s := submission(1)
	s.Text = strings.Repeat("0123456789", 43) + "£"
	first := send(startClient(t, fastConfig(srv.Addr())), s)
	if first.Outcome != provider.Throttled || first.Cut == "" ||
		strings.Contains(first.Cut, "0123") {
		t.Fatalf("%+v", first)
	}
	written := len(srv.Submits())
	cfg := fastConfig(srv.Addr())
	cfg.Alphabet = ASCII
	s.Attempt, s.Parts, s.Cut = 2, []int{1}, first.Cut
	got := send(startClient(t, cfg), s)
	if got.Outcome != provider.Refused || got.Code != provider.Uncomposed || got.Err == nil ||
		got.Parts != nil {
		t.Errorf("%+v", got)
	}
	if n := len(srv.Submits()) - written; n != 0 {
		t.Errorf("%d parts of the new cut were written", n)
	}
}

func TestAFullyAcceptedMessageHasNoCut(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{})
	s := submission(1)
	s.Text = longText(2)
	if r := startClient(t, fastConfig(srv.Addr())).Send(context.Background(),
		s); r.Outcome != provider.Accepted || r.Cut != "" {
		t.Errorf("%+v", r)
	}
}

// TestSegmentsAreCountedAsTheyAreCut: the count that limits and prices use equals what the adapter
// sends.
func TestSegmentsAreCountedAsTheyAreCut(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		cfg := Config{
			Alphabet:     rapid.SampledFrom([]Alphabet{GSM7, Latin1, ASCII}).Draw(t, "alphabet"),
			LongMessages: rapid.SampledFrom([]LongMessages{UDH8, UDH16, SAR}).Draw(t, "way"),
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("a€é[Ω😀")), 1, 400, -1).Draw(t, "text")
		if rapid.Bool().Draw(t, "plain") {
			text = strings.Map(func(r rune) rune { return 'a' }, text)
		}
		p := plan{text: text, way: cfg.LongMessages}
		p.cut(&cfg)
		if err := p.choose(nil); err != nil {
			return // too long for any split
		}
		if got, want := cfg.Segments(text), p.parts(); got != want {
			t.Fatalf("%d counted, %d sent", got, want)
		}
	})
}

func TestEuroSignOnALatin1ChannelCountsAsUCS2(t *testing.T) {
	t.Parallel()
	cfg := Config{Alphabet: Latin1}
	if got := cfg.Segments(strings.Repeat("a", 140) + "€"); got != 3 {
		t.Errorf("%d segments, want 3", got)
	}
}

// TestAnyTextReadsTheSameOnTheHandset sends texts of any length and alphabet. The SMSC joins what
// arrives, for each way of concatenation and each data_coding 0.
func TestAnyTextReadsTheSameOnTheHandset(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way      LongMessages
		ours     Alphabet
		smsc     smpptest.Alphabet
		alphabet string
	}{
		"udh8":            {UDH8, GSM7, smpptest.GSM7, "aZ@£{}[]€ç😀Δ\n "},
		"udh16":           {UDH16, GSM7, smpptest.GSM7, "aZ@£{}[]€ж😀Δ\n "},
		"sar":             {SAR, GSM7, smpptest.GSM7, "aZ@£{}[]€ç😀Δ\n "},
		"message_payload": {MessagePayload, GSM7, smpptest.GSM7, "aZ@£{}[]€ç😀Δ\n "},
		"latin1":          {UDH8, Latin1, smpptest.Latin1, "aZ@£{}[]éÄ€\n "},
		"ascii":           {SAR, ASCII, smpptest.Latin1, "aZ@{}[]é\n "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, smpptest.Config{Log: -1, Alphabet: c.smsc})
			cfg := fastConfig(srv.Addr())
			cfg.LongMessages, cfg.Alphabet = c.way, c.ours
			client := startClient(t, cfg)
			number := 0
			tier.Check(t, func(t *rapid.T) {
				number++
				s := submission(number)
				s.Text = rapid.StringOfN(rapid.SampledFrom(drawable(t, c.alphabet)), 0, 700,
					-1).Draw(t, "text")
				s.Reference = rapid.Uint16().Draw(t, "reference")
				before := len(srv.Submits())
				if r := send(client, s); r.Outcome != provider.Accepted {
					t.Fatalf("result %+v", r)
				}
				joined := smpptest.Join(srv.Submits()[before:])
				if len(joined) != 1 || !joined[0].Complete || joined[0].Text != s.Text ||
					"+"+joined[0].To != s.To {
					t.Fatalf("a text of %d runes became %d messages: %+v", len([]rune(s.Text)),
						len(joined), joined)
				}
			})
		})
	}
}

// drawable is a subset of the alphabet in which texts of GSM-7 alone are frequent.
func drawable(t *rapid.T, alphabet string) []rune {
	runes := []rune(alphabet)
	return runes[:rapid.IntRange(1, len(runes)).Draw(t, "characters")]
}
