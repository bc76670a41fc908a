package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestExplanationSaysThatTheWindowBeginsInTheFuture: instead of a time that was computed at the
// last planning.
func TestExplanationSaysThatTheWindowBeginsInTheFuture(t *testing.T) {
	t.Parallel()
	const (
		begins = "its window begins in the future, 23 November 2026 at 10:00:00 GMT, because the " +
			"database's clock was ahead when it was opened, and no other is opened before. "
		unless = `, so it will fail unless the present window is started again ("dispatcher ` +
			`limits set --restart") or another channel can take it.`
	)
	for name, c := range map[string]struct {
		limit admission.Limit
		want  string
		until time.Duration
	}{
		"a second has no release time before": {
			admission.Limit{Window: admission.Second, Max: 5}, "It waits for the limit of a: " +
				begins +
				"Its deadline is 21 November 2026 at 10:10:00 GMT; the limit has no room before " +
				"23 November 2026 at 10:00:00 GMT" + unless, 48 * time.Hour,
		},
		"a longer one none before it ends": {
			minutely(admission.Scope{}, 5), "It waits for the limit of a: " + begins +
				"Its deadline is 21 November 2026 at 10:10:00 GMT; the limit has no room before " +
				"23 November 2026 at 10:01:00 GMT" + unless, 48*time.Hour + time.Minute,
		},
		"closed is closed": {
			minutely(admission.Scope{}, 0), "It waits, because a is closed (its limit of " +
				"messages " +
				"per minute is 0). " +
				"Unless the limit is raised or another channel can take it, it fails at its " +
				"deadline, 10:10:00 GMT.", 0,
		},
	} {
		doc := london(t)
		doc.Channels[0].Limits = []admission.Limit{c.limit}
		explanation := waitAhead(t, doc, c.limit.Key().On("a"), ten.Add(48*time.Hour))
		_, got, _ := strings.Cut(explanation.Text, "so its first choice was a. So far it has waited "+
			"for 28.3 s. ")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (explanation.Until == nil) != (c.until == 0) || explanation.Until != nil &&
			!explanation.Until.Equal(ten.Add(c.until)) {
			t.Errorf("%s: until %v", name, explanation.Until)
		}
	}
}

// waitAhead explains a message that waits until its deadline for a limit whose window begins at a
// time.
func waitAhead(t *testing.T, doc *config.Routing, on string, begins time.Time) Explanation {
	t.Helper()
	r := newRecord(ledger.Waiting)
	m := &r.Message
	m.Reason, m.WaitsFor, m.NextAt, m.WaitingSince = "no_slot", on, ten.Add(10*time.Minute),
		ten.Add(11700*time.Millisecond)
	r.Seen = encode("load_ratio", ranked("a", 0, "no_slot"))
	explanation, err := Explain(&Source{
		Record: r, Doc: doc, WaitDoc: doc, Now: lookedBack,
		Ahead: begins,
	})
	if err != nil {
		t.Fatal(err)
	}
	return explanation
}
