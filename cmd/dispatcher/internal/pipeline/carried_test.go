package pipeline

import (
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestTheReportReadsTheCauseFromTheStoredRanking checks, for every ranker, that the SQL of the
// ledger's report reads from a stored ranking why the first choice was passed over.
func TestTheReportReadsTheCauseFromTheStoredRanking(t *testing.T) {
	t.Parallel()
	for _, by := range []decide.Ranker{
		decide.LoadRatio, decide.RoundRobin, decide.BestWorker,
		decide.Redraw,
	} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(r *decide.Routing) {
				r.Routes[0].Fallback = by
				r.Channels[1].State = decide.Draining
			})
			p.channels["a"].answer = always(provider.Refused)
			p.handle(t, jobsNamed("m", 100))
			p.eventually(t, byState, map[string]int64{"accepted": 100})
			day, _, err := p.ledger.Reports.Day(t.Context(), ledger.NewBusinessDay(time.Now(), time.UTC))
			if err != nil {
				t.Fatal(err)
			}
			carried := day.Carried
			causes, all := map[string]string{}, int64(0)
			for _, row := range carried {
				if row.Channel != "c" {
					t.Errorf("got %+v, want Channel %v", row, "c")
				}
				causes[row.FirstChoice], all = row.Cause, all+row.Messages
			}
			if len(carried) != 3 || causes["a"] != "refused" || causes["b"] != "draining" ||
				causes["c"] != "" || all != 100 {
				t.Errorf("got %+v", carried)
			}
		})
	}
}
