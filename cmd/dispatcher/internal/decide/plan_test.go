package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

func testPlanner(t *testing.T) *planner {
	t.Helper()
	return &planner{routing: newFixture(t).routing, keys: newDrawers(testKeys), now: noon}
}

func testJob(m envelope.Message) Job {
	if m.ID == "" {
		m.ID = "order-1"
	}
	if m.To == "" {
		m.To = "+447700900123"
	}
	if m.Text == "" {
		m.Text = "Your code is 123456"
	}
	return Job{
		Lane: "bulk", Produced: noon, Raw: []byte("raw"), Message: m,
		Origin: Origin{Topic: "sms.bulk", Partition: 3, Offset: 9},
	}
}

func TestPlanIsTheSameForTheSameID(t *testing.T) {
	t.Parallel()
	job := testJob(envelope.Message{})
	first, second := testPlanner(t).plan(&job), testPlanner(t).plan(&job)
	if !cmp.Equal(first.Row, second.Row) {
		t.Errorf("a redelivered record is planned differently: %s", cmp.Diff(first.Row, second.Row))
	}
	plan := first.Row.Plan
	if plan.Size != 100 || plan.Draw < 0 || plan.Draw >= 100 || plan.KeyID == "" ||
		plan.Version != 7 || plan.Route != "default" {
		t.Errorf("plan %+v", plan)
	}
	if first.Row.State != ledger.Sending || !first.Row.ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("row %+v", first.Row)
	}
}

func TestRecordsThatCannotBeSentAreBuried(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*planner, *Job)
		reason envelope.Code
	}{
		"undecodable": {func(_ *planner, j *Job) {
			j.Message, j.Problem = envelope.Message{}, &envelope.Problem{Code: envelope.BadJSON}
		}, envelope.BadJSON},
		"expired": {func(_ *planner, j *Job) { j.Message.ExpiresAt = noon }, envelope.Expired},
		"older than its lane's ttl": {func(_ *planner, j *Job) {
			j.Produced = noon.Add(-time.Hour)
		}, envelope.Expired},
		"too many segments": {func(_ *planner, j *Job) {
			j.Message.Text = strings.Repeat("x", 153*10+1)
		}, envelope.TooManySegments},
		"no route": {func(p *planner, _ *Job) {
			p.routing.Routes[0].Match.Prefixes = []string{"+49"}
		}, envelope.NoRoute},
	} {
		p, job := testPlanner(t), testJob(envelope.Message{})
		tc.change(p, &job)
		got := p.plan(&job)
		if got.Row.State != ledger.Dead || got.Row.Reason != string(tc.reason) ||
			got.letter == nil || got.Wanted() {
			t.Errorf("%s: got %+v", name, got.Row)
			continue
		}
		if string(got.letter.Value) != "raw" || got.letter.Headers[0].Value != string(tc.reason) {
			t.Errorf("%s: letter %+v", name, got.letter)
		}
		salt := selector.NewDrawer(testKeys[0]).Salt(got.Row.ID)
		hash := sha256.Sum256(append(salt[:], "raw"...))
		if got.Row.Salt != salt ||
			got.Row.EnvelopeHMAC != int64(binary.BigEndian.Uint64(hash[:])) {
			t.Errorf("%s: the hash is %x with salt %x", name, got.Row.EnvelopeHMAC, got.Row.Salt)
		}
		if job.Message.ID == "" && len(got.Row.ID) <= 64 {
			t.Errorf("%s: a record without id was filed under %q, which a producer could use", name,
				got.Row.ID)
		}
	}
}

func TestMessageForLaterIsScheduled(t *testing.T) {
	t.Parallel()
	later := noon.Add(3 * time.Hour)
	job := testJob(envelope.Message{SendAt: later})
	got := testPlanner(t).plan(&job)
	if got.Row.State != ledger.Scheduled || !got.Row.NextAt.Equal(later) ||
		!got.Row.ExpiresAt.Equal(later.Add(time.Hour)) {
		t.Errorf("row %+v", got.Row)
	}
}

func TestFirstMatchingRouteWins(t *testing.T) {
	t.Parallel()
	routing := newFixture(t).routing
	last := routing.Routes[0]
	named := func(name string, m Match) Route { r := last; r.Name, r.Match = name, m; return r }
	routing.Routes = []Route{
		named("label", Match{Labels: map[string]selector.Value{"vip": selector.TextValue("yes")}}),
		named("tenant", Match{Tenants: []string{"shop"}, Lanes: []string{"otp"}}),
		named("prefix", Match{Prefixes: []string{"+49", "+4477"}}),
		named("country", Match{Countries: []string{"fr"}}),
		last,
	}
	routing.Country = func(number string) string {
		if strings.HasPrefix(number, "+33") {
			return "fr"
		}
		return ""
	}
	for want, tc := range map[string]struct {
		msg  envelope.Message
		lane string
	}{
		"label": {envelope.Message{
			To:     "+447712345678",
			Labels: map[string]selector.Value{"vip": selector.TextValue("yes")},
		}, "bulk"},
		"tenant":  {envelope.Message{To: "+447712345678", Tenant: "shop"}, "otp"},
		"prefix":  {envelope.Message{To: "+447712345678", Tenant: "shop"}, "bulk"},
		"country": {envelope.Message{To: "+33612345678"}, "bulk"},
		"default": {envelope.Message{To: "+15551234567"}, "bulk"},
	} {
		if got := routing.route(&tc.msg, tc.lane, time.Time{}); got == nil || got.Name != want {
			t.Errorf("want route %s, got %+v", want, got)
		}
	}
}

func TestDueMessageThatWaitedIsPlannedAgainWithTheSameDraw(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	job := testJob(envelope.Message{})
	row := p.plan(&job).Row
	row.Envelope = []byte(`{"id":"order-1","to":"+447700900123","text":"Your code is 123456"}`)
	row.State = ledger.Waiting
	p.routing.Version = 8
	again := p.planDue(row)
	if again.Row.Plan.Draw != row.Plan.Draw || again.Row.Plan.Version != 8 ||
		again.was != ledger.Waiting {
		t.Errorf("plan %+v, before %+v", again.Row.Plan, row.Plan)
	}
	row.Attempts = 1
	if tried := p.planDue(row); !cmp.Equal(tried.Row.Plan, row.Plan) {
		t.Errorf("the recorded choice of an attempted message changed: %s",
			cmp.Diff(row.Plan, tried.Row.Plan))
	}
}

func TestPriceOfTheLongestPrefixCounts(t *testing.T) {
	t.Parallel()
	price := NewPrice("GBP", PriceList{
		Default:  100,
		Prefixes: map[string]int64{"+4": 40, "+44": 44, "+4477009": 9},
	})
	for number, want := range map[string]int64{
		"+447700900123": 9, "+441234567890": 44,
		"+49123456789": 40, "+33123456789": 100,
	} {
		if got := price.Segment(&Destination{Number: number}, noon); got != want {
			t.Errorf("%s costs %d, want %d", number, got, want)
		}
	}
}

// TestWhatHasBegunIsFinished: a part of a message is useless, and a repeat under the same key is
// the same submission.
func TestWhatHasBegunIsFinished(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	seen := &ledger.Seen{OptedOut: []bool{true, true, true}}
	var tasks []Task
	for _, row := range []ledger.Message{
		{Lane: "bulk"},
		{Lane: "bulk", PartsLeft: []int{1}},
		{Lane: "bulk", SameKey: "k"},
	} {
		tasks = append(tasks, Task{Row: row, Lane: w.routing.Lane(row.Lane)})
	}
	excludeOptedOut(tasks, seen)
	for i, want := range []bool{true, false, false} {
		if tasks[i].optedOut != want {
			t.Errorf("task %d: optedOut %t", i, !want)
		}
	}
}

// TestTheDelayOfAFirstSubmitLeavesOutWhatWasWanted: it begins at send_at, and the time for which
// an operator or quiet hours held the message does not count.
func TestTheDelayOfAFirstSubmitLeavesOutWhatWasWanted(t *testing.T) {
	t.Parallel()
	received, later := noon.Add(-time.Minute), noon.Add(-time.Second)
	after := func(s int) time.Time { return received.Add(time.Duration(s) * time.Second) }
	before := []ledger.Wait{
		{Reason: NoActive, On: "a", For: 20 * time.Second},
		{Reason: ledger.ReasonQuiet, For: 10 * time.Second},
		{Reason: ledger.ReasonPaused, For: 5 * time.Second},
	}
	for name, c := range map[string]struct {
		sendAt time.Time
		reason string
		waits  []ledger.Wait
		want   time.Time
	}{
		"it waited for a slot":      {reason: NoSlot, want: received},
		"its send_at has come":      {sendAt: later, want: later},
		"an earlier send_at":        {sendAt: received.Add(-time.Hour), want: received},
		"it was paused":             {reason: ledger.ReasonPaused, want: after(30)},
		"its route had quiet hours": {reason: ledger.ReasonQuiet, want: after(30)},
		"it was held earlier":       {reason: NoSlot, waits: before, want: after(15)},
		"it was held twice":         {reason: ledger.ReasonPaused, waits: before, want: after(45)},
		"it was held and has just come due": {
			sendAt: later, reason: ledger.ReasonQuiet, want: noon,
		},
	} {
		row := storedRow(ledger.Waiting, 0)
		row.Envelope = (&envelope.Message{
			ID: row.ID, To: "+447700900123", Text: "Hello", SendAt: c.sendAt,
		}).Append(nil)
		row.Reason, row.Waits, row.WaitingSince = c.reason, c.waits, noon.Add(-30*time.Second)
		task, d := newFixture(t).decideDue(row)
		if attempt := newAttempt(&task, &d); !attempt.Since.Equal(c.want) {
			t.Errorf("%s: the delay begins at %s, want %s", name, attempt.Since, c.want)
		}
	}
	job := testJob(envelope.Message{SendAt: later})
	job.Produced = received
	if task := testPlanner(t).plan(&job); !task.since.Equal(later) {
		t.Errorf("the delay of a new message begins at %s", task.since)
	}
}
