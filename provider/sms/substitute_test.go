package sms_test

import (
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

func TestSubstituteReplacesLookAlikes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"plain text", "Your code is 123456", "Your code is 123456"},
		{"curly quotes", "It’s “ready”", `It's "ready"`},
		{"dashes", "9–5 — non‑stop −3", "9-5 - non-stop -3"},
		{"ellipsis", "wait…", "wait..."},
		{"spaces", "1\u00A0000\u202F000\t\u3000", "1 000 000  "},
		{"invisible", "so\u00ADft\uFEFF\u200B", "soft"},
		{"line separators", "a\u2028b\u0085c", "a\nb\nc"},
		{"bullets", "• one", "* one"},
		{"signs", "5 \u2126 \u212B", "5 Ω Å"},
		{"Greek capitals", "ΚΑΛΗΜΕΡΑ ΣΑΣ", "KAΛHMEPA ΣAΣ"},
		{"letters stay what they are", "garçon’s", "garçon’s"},
		{"nothing gained", "’я", "’я"},
		{"invalid UTF-8 stays", "’\xff", "’\xff"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := sms.Substitute(c.text); got != c.want {
				t.Errorf("Substitute(%q) = %q, want %q", c.text, got, c.want)
			}
			checkSubstitute(t, c.text)
		})
	}
}

// checkSubstitute checks what holds for every text: Substitute changes only texts that then fit
// GSM-7, and a second call changes nothing.
func checkSubstitute(t failer, text string) {
	t.Helper()
	got := sms.Substitute(text)
	if got != text && (fitsGSM7(text) || !fitsGSM7(got)) {
		t.Fatalf("a text was changed that fits GSM-7, or that still does not")
	}
	if sms.Substitute(got) != got {
		t.Fatalf("a second pass changes the text again")
	}
	if len(got) > len(text) {
		t.Fatalf("the text grew from %d to %d bytes", len(text), len(got))
	}
}

func TestSubstituteChangesOnlyWhatThenFits(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) { checkSubstitute(t, texts().Draw(t, "text")) })
}

func TestWordsAreTheOnesOfTheRecords(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"gsm7": sms.GSM7.String(), "ucs2": sms.UCS2.String(),
		"Alphabet(9)": sms.Alphabet(9).String(),
		"8":           sms.Reference8.String(), "16": sms.Reference16.String(),
		"Reference(9)": sms.Reference(9).String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkSubstitute(b *testing.B) {
	for name, text := range map[string]string{
		"nothing": benchmarkTexts["otp"], "quotes": "It’s “ready” — come…",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sms.Substitute(text)
			}
		})
	}
}
