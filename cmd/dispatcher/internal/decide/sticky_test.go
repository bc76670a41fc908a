package decide

import (
	"fmt"
	"math"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// stickyPlanner draws by recipient over a, b and c with these weights.
func stickyPlanner(t *testing.T, a, b, c string) *planner {
	t.Helper()
	p := testPlanner(t)
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight(a)},
		{Name: "b", Weight: selector.MustWeight(b)},
		{Name: "c", Weight: selector.MustWeight(c)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.routing.Routes[0].Sticky, p.routing.Routes[0].Table = true, table
	return p
}

// firstChoice returns the first choice of a message to a number.
func firstChoice(t *testing.T, p *planner, id, number string) string {
	t.Helper()
	job := testJob(envelope.Message{ID: id, To: number})
	task := p.plan(&job)
	if task.Row.Plan.FirstChoice == "" {
		t.Fatalf("nothing was drawn: %+v", task.Row)
	}
	return task.Row.Plan.FirstChoice
}

func subscriber(n int) string { return fmt.Sprintf("+4477009%05d", n) }

func TestARecipientStaysOnOneChannel(t *testing.T) {
	t.Parallel()
	p := stickyPlanner(t, "25", "15", "60")
	seen := map[string]bool{}
	for n := range 20 {
		messages := 50
		if n == 0 {
			messages = 1000
		}
		first := firstChoice(t, p, "first", subscriber(n))
		seen[first] = true
		for m := range messages {
			if got := firstChoice(t, p, fmt.Sprint("m-", m), subscriber(n)); got != first {
				t.Fatalf("message %d to number %d: got channel %s, want %s as for the first", m, n, got,
					first)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("all recipients are on %v", seen)
	}
}

// TestWeightsDivideRecipients: a change of weights moves only the recipients between the old and
// the new bound, from one channel to its neighbour.
func TestWeightsDivideRecipients(t *testing.T) {
	t.Parallel()
	const recipients = 20000
	before, after := stickyPlanner(t, "25", "15", "60"), stickyPlanner(t, "30", "10", "60")
	shares, moves := map[string]int{}, map[string]int{}
	for n := range recipients {
		was := firstChoice(t, before, "m", subscriber(n))
		is := firstChoice(t, after, "m", subscriber(n))
		shares[was]++
		if was != is {
			moves[was+" to "+is]++
		}
	}
	near := func(n int, share float64) bool { // within four standard deviations
		return math.Abs(float64(n)-share*recipients) < 4*math.Sqrt(recipients*share*(1-share))
	}
	for channel, share := range map[string]float64{"a": 0.25, "b": 0.15, "c": 0.6} {
		if !near(shares[channel], share) {
			t.Errorf("%s has %d of %d recipients", channel, shares[channel], recipients)
		}
	}
	if len(moves) != 1 || !near(moves["b to a"], 0.05) {
		t.Errorf("moved: %v", moves)
	}
}

// TestAStickyDrawIsThatOfTheStoredHash: a waiting message keeps its draw when the key changes, and
// the draw is derived without key and payload.
func TestAStickyDrawIsThatOfTheStoredHash(t *testing.T) {
	t.Parallel()
	p := stickyPlanner(t, "25", "15", "60")
	for n := range 100 {
		job := testJob(envelope.Message{To: subscriber(n)})
		job.Raw = fmt.Appendf(nil, `{"id":"order-1","to":%q,"text":"hi"}`, subscriber(n))
		task := p.plan(&job)
		row := task.Row
		row.State, row.ReceivedAt = ledger.Waiting, noon

		rotated := &planner{
			routing: p.routing, keys: newDrawers([]selector.Key{{9}}), now: noon,
		}
		due := rotated.planDue(row)
		if due.Row.Plan.Draw != row.Plan.Draw || due.Row.Plan.FirstChoice != row.Plan.FirstChoice {
			t.Fatalf("got plan %+v, then %+v", row.Plan, due.Row.Plan)
		}
		chosen := NewChooser(p.routing, nil).Choose(&row)
		if chosen.First != task.First {
			t.Fatalf("planned %+v, chosen %d without keys", row.Plan, chosen.First)
		}
		replay := NewReplay(p.routing, nil)
		again := replay.PlanWithout(&row, &replay.Version().Routes[0])
		if again.Row.Plan.Draw != row.Plan.Draw ||
			again.Row.Plan.FirstChoice != row.Plan.FirstChoice || again.First != task.First {
			t.Fatalf("planned %+v, derived %+v", row.Plan, again.Row.Plan)
		}
	}
}
