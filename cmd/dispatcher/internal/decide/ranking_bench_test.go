package decide

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/selector"
)

// BenchmarkStoredRankings measures claims of 500 on a durable PostgreSQL: choice, encoding and
// write together. It compares the stored form of the ranking, a list of objects, and no ranking.
// The three alternate, so that a drift of the machine's speed affects all, and medians are
// compared. bytes is the size of a ranking; claim/none is the cost of a claim relative to one
// without rankings; former/claim is that of the list of objects relative to the stored form. Run it
// with -benchtime 60x.
func BenchmarkStoredRankings(b *testing.B) {
	s := ledgertest.Server(b, map[string]string{
		"fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on",
	})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Connect(b.Context(),
		ledger.Config{URL: s.URL(), MaxConns: 1, Region: "test", Host: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	if err := l.Instances.Register(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, mode := range []Mode{RoundRobinMode, LongestIdle, BestWorkerMode, redrawn} {
		for _, channels := range []int{3, 10, 20} {
			b.Run(fmt.Sprintf("%s/%d", mode, channels), func(b *testing.B) {
				benchmarkStored(b, l, mode, channels)
			})
		}
	}
}

// redrawn is mode weighted with all first choices disconnected.
const redrawn Mode = "redraw"

func benchmarkStored(b *testing.B, l *ledger.Ledger, mode Mode, channels int) {
	c := newStoredClaims(b, l, mode, channels)
	forms := []func(*assigner, *Task, []byte) []byte{asStored, asObjects, notStored}
	took := make([][]float64, len(forms))
	for round := 0; b.Loop(); round++ {
		for i, form := range forms {
			took[i] = append(took[i], c.run(b,
				fmt.Sprintf("%s-%d-%d-%d-%d", mode, channels, b.N, round, i), form).Seconds()*1000)
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	median := func(i int) float64 { return took[i][len(took[i])/2] }
	b.ReportMetric(median(0), "ms/claim")
	b.ReportMetric(median(0)/median(2), "claim/none")
	b.ReportMetric(median(1)/median(0), "former/claim")
	b.ReportMetric(c.bytes, "bytes")
}

// storedClaims makes claims of 500 new messages.
type storedClaims struct {
	ledger  *ledger.Ledger
	fixture *fixture
	jobs    []Job
	request ledger.Claim
	bytes   float64
}

func newStoredClaims(b *testing.B, l *ledger.Ledger, mode Mode, channels int) *storedClaims {
	fallback := LoadRatio
	if mode == redrawn {
		mode, fallback = Weighted, Redraw
	}
	c := &storedClaims{
		ledger: l, fixture: wideFixture(b, channels, mode, fallback),
		jobs: make([]Job, benchmarkedClaim),
	}
	c.fixture.routing.Prepare()
	n := ledger.NewRouting{Routes: []ledger.RouteSpec{{Name: "default"}}}
	for i := range c.fixture.routing.Channels {
		name := c.fixture.routing.Channels[i].Name
		n.Channels = append(n.Channels, ledger.ChannelSpec{Name: name})
		n.Routes[0].Members = append(n.Routes[0].Members, name)
	}
	if _, err := l.Routing.Apply(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	c.request.Channels = n.Routes[0].Members
	if mode == RoundRobinMode {
		c.request.Cursors = []string{"default"}
	}
	for i := range c.jobs {
		c.jobs[i] = Job{
			Lane: "bulk", Produced: time.Now(),
			Message: envelope.Message{To: "+447700900123", Text: "Your code is 123456"},
		}
		c.jobs[i].Raw = []byte(`{"to":"+447700900123","text":"Your code is 123456"}`)
		c.jobs[i].Message.Labels = map[string]selector.Value{
			"language":   selector.TextValue("en"),
			"department": selector.TextValue("sales"),
		}
		c.jobs[i].Message.Selectors = []selector.Selector{{
			Key:      "quality",
			Operator: selector.GreaterThanEqual, Value: selector.NumberValue(1),
		}}
	}
	return c
}

// run measures one claim with rankings in a form.
func (c *storedClaims) run(b *testing.B, name string,
	form func(*assigner, *Task, []byte) []byte,
) time.Duration {
	p := &planner{routing: c.fixture.routing, keys: newDrawers(testKeys), now: time.Now()}
	tasks := make([]Task, len(c.jobs))
	c.request.Messages = make([]ledger.Message, len(c.jobs))
	began := time.Now()
	for i := range c.jobs {
		c.jobs[i].Message.ID = fmt.Sprint(name, "-", i*7919%1000)
		tasks[i] = p.plan(&c.jobs[i])
		c.request.Messages[i] = tasks[i].Row
	}
	bytes := 0
	tx, err := c.ledger.Claims.Lock(b.Context(), c.request)
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	a := newAssigner(c.fixture.routing, p.keys, seen, Snapshot{Unready: c.fixture.unready})
	all := ledger.Decisions{Each: make([]ledger.Decision, len(tasks))}
	for i := range tasks {
		t := &tasks[i]
		t.Row.ReceivedAt = seen.Messages[i].ReceivedAt
		if t.Route.Draws() {
			c.fixture.unready[t.First] = "connecting"
		}
		d := a.decide(t)
		if t.Route.Draws() {
			c.fixture.unready[t.First] = ""
		}
		if d.State != ledger.Sending || d.Attempt.Ranking == nil {
			b.Fatalf("decision %+v", d)
		}
		d.Attempt.Ranking = form(a, t, d.Attempt.Ranking)
		bytes += len(d.Attempt.Ranking)
		all.Each[i] = d.Decision
	}
	if err := tx.Commit(b.Context(), all); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if c.bytes == 0 {
		c.bytes = float64(bytes) / float64(len(tasks))
	}
	return took
}

func asStored(_ *assigner, _ *Task, ranking []byte) []byte { return ranking }

func notStored(*assigner, *Task, []byte) []byte { return nil }

// asObjects writes every candidate as an object with all its state.
func asObjects(a *assigner, t *Task, _ []byte) []byte {
	l := a.spare // the order of this choice
	dst := appendMember([]byte(`{"version":1`), `,"by":`, string(l.by))
	dst = append(dst, `,"candidates":[`...)
	for i := range l.candidates {
		one := a.ranked(t, l, i)
		dst = appendMember(dst, `{"channel":`, one.Channel)
		dst = strconv.AppendInt(append(dst, `,"active":`...), one.Active, 10)
		dst = strconv.AppendInt(append(dst, `,"capacity":`...), one.Capacity, 10)
		if one.LastAssigned != 0 {
			dst = strconv.AppendInt(append(dst, `,"last_assigned":`...),
				int64(one.LastAssigned), 10)
		}
		if one.Score != nil {
			dst = a.scores.append(append(dst, `,"score":`...), *one.Score)
		}
		dst = append(appendOptional(dst, `,"reason":`, one.Reason), "},"...)
	}
	return append(dst[:len(dst)-1], "]}"...)
}
