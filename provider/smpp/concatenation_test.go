package smpp

import (
	"testing"

	"pgregory.net/rapid"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// TestAnyTextReadsTheSameOnTheHandset sends texts of any length and alphabet and lets
// the SMSC join what arrived, for each way of concatenation and each data_coding 0.
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
			rapid.Check(t, func(t *rapid.T) {
				number++
				s := submission(number)
				s.Text = rapid.StringOfN(rapid.SampledFrom(drawable(t, c.alphabet)), 0, 700, -1).Draw(t, "text")
				s.Reference = rapid.Uint16().Draw(t, "reference")
				before := len(srv.Submits())
				if r := send(client, s); r.Outcome != provider.Accepted {
					t.Fatalf("result %+v", r)
				}
				joined := smpptest.Join(srv.Submits()[before:])
				if len(joined) != 1 || !joined[0].Complete || joined[0].Text != s.Text || "+"+joined[0].To != s.To {
					t.Fatalf("a text of %d runes became %d messages: %+v", len([]rune(s.Text)), len(joined), joined)
				}
			})
		})
	}
}

// drawable is a subset of the alphabet, so that texts of GSM-7 alone are common.
func drawable(t *rapid.T, alphabet string) []rune {
	runes := []rune(alphabet)
	return runes[:rapid.IntRange(1, len(runes)).Draw(t, "characters")]
}
