package smpp

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSegmentsAreCountedAsTheyAreCut holds the count that limits and prices go by to
// what the adapter sends.
func TestSegmentsAreCountedAsTheyAreCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
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
			return // too long for any way of cutting
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
