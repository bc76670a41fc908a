package decide

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestAnExpiredAttemptEndsItsMessage: it costs nothing, and what was accepted of it before is
// billed.
func TestAnExpiredAttemptEndsItsMessage(t *testing.T) {
	t.Parallel()
	parts := func(outcomes ...provider.Outcome) (out []provider.Part) {
		for i, o := range outcomes {
			out = append(out, provider.Part{Index: i, Outcome: o, Code: CodeExpired})
		}
		return out
	}
	for name, tc := range map[string]struct {
		parts  []provider.Part
		micros int64
	}{
		"a whole message":           {nil, 0},
		"parts, and none left":      {parts(provider.Refused, provider.Refused, provider.Refused), 0},
		"one part of three did":     {parts(provider.Accepted, provider.Refused, provider.Refused), 100},
		"the clock is a bit behind": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &Attempt{
				Channel: "a", Submission: provider.Submission{ID: "m", Attempt: 1}, Segments: 3, Price: 300,
				Expires: noon.Add(time.Millisecond), // settled before, as far as this process knows
			}
			s := settle(f, &provider.Result{Outcome: provider.Refused, Code: CodeExpired, Parts: tc.parts, Cut: "x"}, noon)
			if s.State != ledger.Failed || s.Reason != reasonExpired || s.PriceMicros != tc.micros || s.Tried {
				t.Errorf("%+v", s)
			}
		})
	}
}
