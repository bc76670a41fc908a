package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

func TestChoicesAreSplitByRoutingVersion(t *testing.T) {
	t.Parallel()
	l := open(t)
	messages := batch("choice", 5)
	messages[3].Plan.Version, messages[4].Plan.Version = 2, 2
	messages[4].Plan.FirstChoice = "b"
	claimAll(t, l, messages, "a", "b", "c")
	want := []ledger.ChoiceRow{
		{Version: 1, Route: "default", Channel: "a", FirstChoice: 3, Open: 3, Segments: 3},
		{Version: 2, Route: "default", Channel: "a", FirstChoice: 1, Open: 1, Segments: 1},
		{Version: 2, Route: "default", Channel: "b", FirstChoice: 1, Open: 1, Segments: 1},
	}
	today, err := l.Reports.Choices(t.Context(), time.Now(), time.UTC)
	if err != nil || !cmp.Equal(today, want) {
		t.Errorf("%v %s", err, cmp.Diff(want, today))
	}
	yesterday, err := l.Reports.Choices(t.Context(), time.Now().AddDate(0, 0, -2), time.UTC)
	if err != nil || len(yesterday) != 0 {
		t.Errorf("%v, %v", yesterday, err)
	}
}
