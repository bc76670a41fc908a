package decide

import (
	"testing"
)

// TestAChannelGivesANumberWithAndWithoutAPlus: as its default and by its rules.
func TestAChannelGivesANumberWithAndWithoutAPlus(t *testing.T) {
	t.Parallel()
	for _, channels := range []string{"447700900222", "+447700900222"} {
		for name, s := range map[string]Senders{
			"default": {Default: channels},
			"rule":    {Rules: []SenderRule{{From: "ACME"}, {From: channels}}},
		} {
			for sender, want := range map[string]bool{
				"447700900222": true, "+447700900222": true,
				"447700900223": false, "900222": false,
			} {
				if got := s.Gives(sender); got != want {
					t.Errorf("%s %s gives %s: %v", name, channels, sender, got)
				}
			}
		}
	}
}
