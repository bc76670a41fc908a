package dispatch

import (
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
	return &planner{routing: newWorld(t).routing, keys: newDrawers(testKeys), now: noon}
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
	return Job{Lane: "bulk", Produced: noon, Raw: []byte("raw"), Message: m, Origin: Origin{Topic: "sms.bulk", Partition: 3, Offset: 9}}
}

func TestPlanIsTheSameForTheSameID(t *testing.T) {
	t.Parallel()
	job := testJob(envelope.Message{})
	first, second := testPlanner(t).plan(&job), testPlanner(t).plan(&job)
	if !cmp.Equal(first.row, second.row) {
		t.Errorf("a redelivered record is planned differently: %s", cmp.Diff(first.row, second.row))
	}
	plan := first.row.Plan
	if plan.Size != 100 || plan.Draw < 0 || plan.Draw >= 100 || plan.KeyID == "" || plan.Version != 7 || plan.Route != "default" {
		t.Errorf("plan %+v", plan)
	}
	if first.row.State != ledger.Sending || !first.row.ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("row %+v", first.row)
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
		"expired":                   {func(_ *planner, j *Job) { j.Message.ExpiresAt = noon }, envelope.Expired},
		"older than its lane's ttl": {func(_ *planner, j *Job) { j.Produced = noon.Add(-time.Hour) }, envelope.Expired},
		"too many segments":         {func(_ *planner, j *Job) { j.Message.Text = strings.Repeat("x", 153*10+1) }, envelope.TooManySegments},
		"no route":                  {func(p *planner, _ *Job) { p.routing.Routes[0].Match.Prefixes = []string{"+49"} }, envelope.NoRoute},
	} {
		p, job := testPlanner(t), testJob(envelope.Message{})
		tc.change(p, &job)
		got := p.plan(&job)
		if got.row.State != ledger.Dead || got.row.Reason != string(tc.reason) || got.letter == nil || got.wanted() {
			t.Errorf("%s: %+v", name, got.row)
			continue
		}
		if string(got.letter.Value) != "raw" || got.letter.Headers[0].Value != string(tc.reason) {
			t.Errorf("%s: letter %+v", name, got.letter)
		}
		if job.Message.ID == "" && len(got.row.ID) <= 64 {
			t.Errorf("%s: a record without id was filed under %q, which a producer could use", name, got.row.ID)
		}
	}
}

func TestMessageForLaterIsScheduled(t *testing.T) {
	t.Parallel()
	later := noon.Add(3 * time.Hour)
	job := testJob(envelope.Message{SendAt: later})
	got := testPlanner(t).plan(&job)
	if got.row.State != ledger.Scheduled || !got.row.NextAt.Equal(later) || !got.row.ExpiresAt.Equal(later.Add(time.Hour)) {
		t.Errorf("row %+v", got.row)
	}
}

func TestFirstMatchingRouteWins(t *testing.T) {
	t.Parallel()
	routing := newWorld(t).routing
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
		"label":   {envelope.Message{To: "+447712345678", Labels: map[string]selector.Value{"vip": selector.TextValue("yes")}}, "bulk"},
		"tenant":  {envelope.Message{To: "+447712345678", Tenant: "shop"}, "otp"},
		"prefix":  {envelope.Message{To: "+447712345678", Tenant: "shop"}, "bulk"},
		"country": {envelope.Message{To: "+33612345678"}, "bulk"},
		"default": {envelope.Message{To: "+15551234567"}, "bulk"},
	} {
		if got := routing.route(&tc.msg, tc.lane); got == nil || got.Name != want {
			t.Errorf("want route %s, got %+v", want, got)
		}
	}
}

func TestDueMessageThatWaitedIsPlannedAgainWithTheSameDraw(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	job := testJob(envelope.Message{})
	row := p.plan(&job).row
	row.Envelope = []byte(`{"id":"order-1","to":"+447700900123","text":"Your code is 123456"}`)
	row.State = ledger.Waiting
	p.routing.Version = 8
	again := p.planDue(row)
	if again.row.Plan.Draw != row.Plan.Draw || again.row.Plan.Version != 8 || again.was != ledger.Waiting {
		t.Errorf("plan %+v, before %+v", again.row.Plan, row.Plan)
	}
	row.Attempts = 1
	if tried := p.planDue(row); !cmp.Equal(tried.row.Plan, row.Plan) {
		t.Errorf("the recorded choice of an attempted message changed: %s", cmp.Diff(row.Plan, tried.row.Plan))
	}
}

func TestPriceOfTheLongestPrefixCounts(t *testing.T) {
	t.Parallel()
	price := NewPrice("GBP", PriceList{Default: 100, Prefixes: map[string]int64{"+4": 40, "+44": 44, "+4477009": 9}})
	for number, want := range map[string]int64{"+447700900123": 9, "+441234567890": 44, "+49123456789": 40, "+33123456789": 100} {
		if got := price.Segment(&Destination{Number: number}, noon); got != want {
			t.Errorf("%s costs %d, want %d", number, got, want)
		}
	}
}

func TestSecondRecordWithAnIDOfTheBatchComesLater(t *testing.T) {
	t.Parallel()
	ids := func(jobs []Job) (out []string) {
		for _, j := range jobs {
			out = append(out, j.Message.ID)
		}
		return out
	}
	var jobs []Job
	for _, id := range []string{"a", "b", "a", "", "", "c", "b", "a"} {
		jobs = append(jobs, Job{Message: envelope.Message{ID: id}})
	}
	first, again := distinct(jobs)
	if !cmp.Equal(ids(first), []string{"a", "b", "", "", "c"}) || !cmp.Equal(ids(again), []string{"a", "b", "a"}) {
		t.Errorf("first %q, again %q", ids(first), ids(again))
	}
}
