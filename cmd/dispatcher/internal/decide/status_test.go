package decide

import (
	"encoding/json"
	"testing"

	"dispatcher/provider"
)

// TestAnEventHasTheNumberOfAcceptedParts: for a message of which only some parts were accepted,
// over all attempts.
func TestAnEventHasTheNumberOfAcceptedParts(t *testing.T) {
	t.Parallel()
	answers := func(outcomes ...provider.Outcome) *provider.Result {
		r := provider.Result{}
		for i, o := range outcomes {
			r.Parts = append(r.Parts, provider.Part{Index: i, Outcome: o})
		}
		r.Outcome = provider.Combine(r.Parts)
		return &r
	}
	const a, no, busy, lost = provider.Accepted, provider.Rejected, provider.Throttled,
		provider.Unknown
	for name, test := range map[string]struct {
		before int // parts that earlier attempts sent
		result *provider.Result
		want   int
	}{
		"rejected after two parts":          {0, answers(a, a, no), 2},
		"rejected after one part before":    {1, answers(a, no), 2},
		"the rest is to be tried again":     {0, answers(a, busy, busy), 1},
		"nothing was taken":                 {0, answers(no, no), 0},
		"nothing more was taken":            {2, &provider.Result{Outcome: no}, 2},
		"all of it":                         {1, answers(a, a), 0},
		"nobody knows of one of the others": {0, answers(a, lost), 0},
	} {
		attempt := testFlight()
		attempt.taken, attempt.Segments = test.before, max(len(test.result.Parts), 1)
		s := settle(attempt, test.result, noon)
		n := new(events).ofSettlement(attempt, &s, noon)
		var event struct {
			Parts int `json:"parts_accepted"`
		}
		if err := json.Unmarshal(n.Value, &event); err != nil || event.Parts != test.want {
			t.Errorf("%s: %d parts, %v in %s", name, event.Parts, err, n.Value)
		}
	}
}
