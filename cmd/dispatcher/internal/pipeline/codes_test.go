package pipeline

import (
	"fmt"
	"testing"
)

func TestCodesOfProvidersBecomeFewLabels(t *testing.T) {
	t.Parallel()
	l := newCodeLabels()
	for code, want := range map[string]string{
		"0x00000058": "0x00000058", "429/20003": "429/20003", "timeout": "timeout",
		"": otherCode, "447700900123": otherCode, "+447700900": otherCode, "to 1234567": otherCode,
		"code: your pin is 1234 and some more words of a text": otherCode, "é": otherCode,
		"ref-1234567": otherCode, "0044770090": otherCode,
	} {
		if got := l.label("a", code); got != want {
			t.Errorf("code %q: got %q", code, got)
		}
	}
	for n := range 2 * mostCodes {
		l.label("b", fmt.Sprintf("code%d", n))
	}
	if got := l.label("b", "code0"); got != "code0" {
		t.Errorf("an existing code: got %q", got)
	}
	if got := l.label("b", "new"); got != otherCode {
		t.Errorf("code %d: got %q", 2*mostCodes+1, got)
	}
	if got := l.label("c", "new"); got != "new" {
		t.Errorf("the first code of another channel: got %q", got)
	}
}
