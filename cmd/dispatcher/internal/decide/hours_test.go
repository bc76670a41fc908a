package decide

import (
	"errors"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// clock returns the hours from and to of every day.
func clock(from, to int) config.Hours { return config.Hours{{Days: 127, From: from * 60, To: to * 60}} }

// dayAndNight returns a fixture at noon with a route for office hours, one for the sender NIGHTS,
// and default.
func dayAndNight(t *testing.T) *fixture {
	t.Helper()
	w := newFixture(t)
	office, nights := w.routing.Routes[0], w.routing.Routes[0]
	office.Name, office.Match.Hours = "office", clock(8, 18)
	nights.Name, nights.Match.Senders = "nights", []string{"NIGHTS"}
	w.routing.Routes = []Route{nights, office, w.routing.Routes[0]}
	return w
}

func TestARouteTakesMessagesByHoursAndSender(t *testing.T) {
	t.Parallel()
	w := dayAndNight(t)
	for name, c := range map[string]struct {
		msg  envelope.Message
		now  time.Time
		want string
	}{
		"at noon":                {envelope.Message{}, noon, "office"},
		"by another sender":      {envelope.Message{From: "nights"}, noon, "office"},
		"by the sender":          {envelope.Message{From: "NIGHTS"}, noon, "nights"},
		"in the evening":         {envelope.Message{}, noon.Add(6 * time.Hour), "default"},
		"for the evening":        {envelope.Message{SendAt: noon.Add(7 * time.Hour)}, noon, "default"},
		"for the next noon":      {envelope.Message{SendAt: noon.Add(24 * time.Hour)}, noon.Add(9 * time.Hour), "office"},
		"to be sent in the past": {envelope.Message{SendAt: noon.Add(-8 * time.Hour)}, noon, "office"},
	} {
		p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: c.now}
		job := testJob(c.msg)
		job.Message.ID, job.Message.To, job.Message.Text = "m", "+447700900123", "Hello"
		job.Produced = c.now
		if got := p.plan(&job); got.Row.Plan.Route != c.want {
			t.Errorf("%s: route %q (%s), want %s", name, got.Row.Plan.Route, got.Row.Reason, c.want)
		}
	}
}

// TestAWaitingMessageKeepsTheRouteOfItsHours: planned again at night, it still belongs to the route
// of the office hours.
func TestAWaitingMessageKeepsTheRouteOfItsHours(t *testing.T) {
	t.Parallel()
	w := dayAndNight(t)
	row := storedRow(ledger.Waiting, 0)
	row.ReceivedAt, row.ExpiresAt = noon, noon.Add(24*time.Hour)
	night := noon.Add(10 * time.Hour)
	w.seen.Now = night
	task := (&planner{routing: w.routing, keys: newDrawers(testKeys), now: night}).planDue(row)
	if d := w.assigner().decide(&task); d.State != ledger.Sending || task.Route.Name != "office" {
		t.Errorf("route %s, decision %+v", task.Route.Name, d)
	}
}

// TestAClaimAcrossAnHourIsPlannedAgain: a message that was planned before six and received after it
// belongs to the other route, whose channels were not locked.
func TestAClaimAcrossAnHourIsPlannedAgain(t *testing.T) {
	t.Parallel()
	w := dayAndNight(t)
	for at, want := range map[time.Duration]error{
		5*time.Hour + 59*time.Minute: nil, 6 * time.Hour: ErrStaleRouting,
	} {
		jobs := jobsNamed("m", 1)
		jobs[0].Produced = noon
		plan := NewPlan(w.routing, testKeys, noon.Add(5*time.Hour), jobs)
		seen := *w.seen
		seen.Now = noon.Add(at)
		seen.Messages = []ledger.Message{{Seq: 1, ReceivedAt: noon.Add(at)}}
		seen.Intakes = []ledger.Intake{ledger.Fresh}
		if _, err := Batch(plan, &seen, &Snapshot{Unready: w.unready}); !errors.Is(err, want) {
			t.Errorf("received at %s: %v, want %v", at, err, want)
		}
		seen.Intakes[0] = ledger.Duplicate // there is no decision on it
		if _, err := Batch(plan, &seen, &Snapshot{Unready: w.unready}); err != nil {
			t.Errorf("a duplicate at %s: %v", at, err)
		}
	}
}

// TestQuietHoursHoldMessagesUntilTheyEnd: new, waiting and retried messages, by the clock of the
// document or of the recipient. A message with some parts sent is completed, and deadlines still
// hold.
func TestQuietHoursHoldMessagesUntilTheyEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture, *Task)
		state  ledger.State
		reason string
		next   time.Duration
	}{
		"new": {func(*fixture, *Task) {}, ledger.Waiting, "quiet_hours", 90 * time.Minute},
		"to be tried again": {func(_ *fixture, t *Task) {
			t.was = ledger.Retry
			t.tried("a")
		}, ledger.Waiting, "quiet_hours", 90 * time.Minute},
		"near its deadline": {func(_ *fixture, t *Task) {
			t.Row.ExpiresAt = noon.Add(10 * time.Minute)
		}, ledger.Waiting, "quiet_hours", 9 * time.Minute},
		"past its deadline": {func(_ *fixture, t *Task) {
			t.Row.ExpiresAt = noon
		}, ledger.Failed, reasonExpired, 0},
		"opted out": {func(_ *fixture, t *Task) { t.optedOut = true }, ledger.Rejected, ReasonOptedOut, 0},
		"the rest of its parts": {func(_ *fixture, t *Task) {
			t.Row.PartsLeft, t.Row.Pinned = []int{1}, "a"
		}, ledger.Sending, "", 0},
		"it is awake there": {func(w *fixture, t *Task) {
			w.routing.Routes[0].Quiet.ByRecipient, t.to.Country = true, "jp"
		}, ledger.Sending, "", 0},
		"it is night there": {func(w *fixture, t *Task) {
			quiet := w.routing.Routes[0].Quiet
			quiet.ByRecipient, quiet.Hours, t.to.Country = true, clock(20, 22), "jp"
		}, ledger.Waiting, "quiet_hours", time.Hour},
		"the route reroutes": {func(w *fixture, _ *Task) {
			w.routing.Routes[0].Quiet.Next = true
		}, ledger.Waiting, "quiet_hours", 90 * time.Minute},
	} {
		w := newFixture(t)
		w.routing.Routes[0].Quiet = &config.Quiet{
			Hours: config.Hours{{Days: 127, From: 11 * 60, To: 13*60 + 30}}, Zone: time.UTC,
		}
		task := w.task("a")
		task.Row.ExpiresAt = noon.Add(24 * time.Hour)
		c.change(w, task)
		d := w.decide(task)
		next := time.Duration(0)
		if !d.NextAt.IsZero() {
			next = d.NextAt.Sub(noon)
		}
		if d.State != c.state || d.State != ledger.Sending && d.Reason != c.reason || next != c.next {
			t.Errorf("%s: %+v, in %s", name, d, next)
		}
	}
}

// TestQuietHoursLeaveMessagesToTheNextRoute: by the recipient's clock, if the route says so.
func TestQuietHoursLeaveMessagesToTheNextRoute(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	campaigns := w.routing.Routes[0]
	campaigns.Name = "campaigns"
	campaigns.Quiet = &config.Quiet{
		Hours: clock(20, 24), Zone: time.UTC, ByRecipient: true, Next: true,
	}
	w.routing.Routes = []Route{campaigns, w.routing.Routes[0]}
	w.routing.Country = func(number string) string {
		return map[string]string{"+81": "jp", "+44": "gb"}[number[:3]]
	}
	w.routing.Prepare()
	for to, want := range map[string]string{
		"+819012345678": "default", "+447700900123": "campaigns",
	} {
		p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}
		job := testJob(envelope.Message{ID: "m", To: to, Text: "Hello"})
		if got := p.plan(&job); got.Row.Plan.Route != want {
			t.Errorf("route %s, want %s", got.Row.Plan.Route, want)
		}
	}
	w.routing.Routes[0].Quiet.Next = false
	for to, want := range map[string]ledger.State{
		"+819012345678": ledger.Waiting, "+447700900123": ledger.Sending,
	} {
		p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}
		job := testJob(envelope.Message{ID: "m", To: to, Text: "Hello"})
		job.Produced = noon
		task := p.plan(&job)
		task.Row.ReceivedAt = noon
		if d := w.decide(&task); d.State != want {
			t.Errorf("%s on a route that holds, want %s: %+v", to[:3], want, d)
		}
	}
}

// TestAnExplanationNamesQuietHours: and when they end.
func TestAnExplanationNamesQuietHours(t *testing.T) {
	t.Parallel()
	q := testQuestion(t)
	q.Routing.Routes[0].Quiet = &config.Quiet{
		Hours: config.Hours{{Days: 127, From: 0, To: 12*60 + 30}}, Zone: time.UTC,
	}
	q.Keys = []selector.Key{testKeys[0]}
	if d := Explain(q).Decision; d.State != ledger.Waiting || d.Reason != "quiet_hours" ||
		!d.NextAt.Equal(noon.Add(30*time.Minute)) {
		t.Errorf("decision %+v", d)
	}
}
