package inbound

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config/tier"
	"dispatcher/provider"
)

// TestWhatIsStoredFitsTheDatabase: PostgreSQL refuses zero bytes and invalid UTF-8, and a provider
// would repeat a message that can never be stored.
func TestWhatIsStoredFitsTheDatabase(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text")
		longest := rapid.IntRange(0, 20).Draw(rt, "longest")
		got := storable(s, longest)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || len(got) > longest {
			rt.Fatalf("%q became %q of at most %d bytes", s, got, longest)
		}
		if clean := strings.ReplaceAll(s, "\x00", ""); utf8.ValidString(s) &&
			len(clean) <= longest && got != clean {
			rt.Fatalf("%q became %q", s, got)
		}
	})
	// Two bytes that become a character only when the zero byte between them is removed do not count
	// as one.
	if got := storable("a\xc2\x00\x80", longestField); got != "a\uFFFD\uFFFD" {
		t.Errorf("got %q, want %q", got, "a\uFFFD\uFFFD")
	}
}

func TestEveryMessageHasAnIDOfItsOwnAndATime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_760_000_000, 0)
	one := newInbound("a", &provider.Inbound{Text: "x"}, asItIs, now)
	two := newInbound("a", &provider.Inbound{Text: "x", At: now.Add(time.Hour)}, asItIs, now)
	if one.ID == "" || one.ID == two.ID || !one.At.Equal(now) || !two.At.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

func TestASubscriberHasTheNumberThatMessagesToHimHave(t *testing.T) {
	t.Parallel()
	british := numbers.Region("GB").E164
	for from, want := range map[string]string{
		"07700900123": "+447700900123", "+447700900123": "+447700900123",
		"00447700900123": "+447700900123",
		"60777":          "60777", "123456": "123456", "ACME": "ACME",
		"ACME 2000 UK": "ACME 2000 UK",
		"":             "",
	} {
		if got := subscriber(from, british); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}
