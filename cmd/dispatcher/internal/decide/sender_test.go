package decide

import (
	"testing"
)

func TestFiguresShowSendersButNoNumber(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"": "", "ACME": "ACME", "ACME 24/7": "ACME 24/7", "60777": "60777", "12345678": "12345678",
		"+447700900123": "long_code", "447700900123": "long_code", "07700-90012": "long_code",
		"АСМЕ": "",
	} {
		if got := SenderOf(from); got != want {
			t.Errorf("%q is shown as %q, not %q", from, got, want)
		}
	}
}
