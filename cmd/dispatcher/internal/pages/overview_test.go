package pages

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// TestTheOverviewShowsWhatIsHeldAndWhatIsNotKnown: messages that are paused, and a lag that no
// instance has reported, which is not shown as 0.
func TestTheOverviewShowsWhatIsHeldAndWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	storeMessage(t, c.ledger, "held", &ledger.Decision{State: ledger.Waiting, Reason: "paused"})
	body := c.client(t, "viewer").get("/").body
	for _, want := range []string{
		"<dt>Lag in Kafka</dt><dd>not known</dd>", "<dt>Waiting</dt><dd>1</dd>",
		"<dt>Paused</dt><dd>1</dd>", `<td class="r">1</td><td class="grow">paused</td>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

func TestTheLagIsThatOfAllLanes(t *testing.T) {
	t.Parallel()
	lane := func(lag int64) status.Lane { return status.Lane{Lag: &lag} }
	if lag := lagOf([]status.Lane{lane(3), lane(0), lane(4)}); lag == nil || *lag != 7 {
		t.Errorf("got %v, want 7", lag)
	}
	if lag := lagOf([]status.Lane{lane(3), {}}); lag != nil {
		t.Errorf("got %d, want none while a lane's is not known", *lag)
	}
}
