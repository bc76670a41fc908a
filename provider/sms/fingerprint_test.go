package sms_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

func TestFingerprintsTellCutsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, cut := range []struct {
		how      string
		segments []string
	}{
		{"smpp gsm7 udh8", []string{"ab", "c"}},
		{"smpp gsm7 udh8", []string{"a", "bc"}},
		{"smpp gsm7 udh8", []string{"abc"}},
		{"smpp gsm7 udh8", []string{"ab", "c", ""}},
		{"smpp gsm7 udh8", []string{"ab", "d"}},
		{"smpp ucs2 udh8", []string{"ab", "c"}},
		{"smpp gsm7 udh16", []string{"ab", "c"}},
		{"smpp gsm7 udh8", nil},
	} {
		f := sms.Fingerprint(cut.how, cut.segments)
		if before, known := seen[f]; known {
			t.Errorf("cuts %d and %d are both %q", before, i, f)
		}
		seen[f] = i
		if again := sms.Fingerprint(cut.how, cut.segments); again != f {
			t.Errorf("cut %d is %q, then %q", i, f, again)
		}
	}
}

// TestFingerprintFollowsTheSegments: rules that cut a text equally have the same fingerprint,
// others do not.
func TestFingerprintFollowsTheSegments(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		narrow, wide := sms.Split(text, sms.Reference8).Segments,
			sms.Split(text, sms.Reference16).Segments
		alike := strings.Join(narrow, "\x00") == strings.Join(wide, "\x00")
		if got := sms.Fingerprint("", narrow) == sms.Fingerprint("", wide); got != alike {
			t.Fatalf("%d and %d segments, equal %v, fingerprints equal %v", len(narrow), len(wide),
				alike, got)
		}
	})
}
