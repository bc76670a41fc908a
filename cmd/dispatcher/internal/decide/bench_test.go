package decide

import (
	"fmt"
	"testing"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// BenchmarkPlanAndAssign plans and assigns messages in claims of 500. All except weighted write the
// ranking that is stored with the choice.
func BenchmarkPlanAndAssign(b *testing.B) {
	for _, bc := range []struct {
		mode     Mode
		channels int
	}{
		{Weighted, 3},
		{Weighted, 20},
		{RoundRobinMode, 20},
		{LongestIdle, 20},
		{BestWorkerMode, 20},
		{LongestIdle, 100},
		{LongestIdle, 1000},
	} {
		b.Run(fmt.Sprintf("%s/%d", bc.mode, bc.channels), func(b *testing.B) {
			benchmarkClaim(b, bc.mode, bc.channels)
		})
	}
}

const benchmarkedClaim = 500

func benchmarkClaim(b *testing.B, mode Mode, channels int) {
	w := wideFixture(b, channels, mode, LoadRatio)
	w.routing.Prepare()
	jobs := make([]Job, benchmarkedClaim)
	for i := range jobs {
		jobs[i] = Job{
			Lane: "bulk", Produced: noon,
			Message: envelope.Message{
				ID: fmt.Sprint("m-", i), To: "+447700900123",
				Text: "Your code is 123456",
			},
		}
		if mode == BestWorkerMode {
			jobs[i].Message.Labels = map[string]selector.Value{
				"language":   selector.TextValue("en"),
				"department": selector.TextValue("sales"),
			}
			jobs[i].Message.Selectors = []selector.Selector{
				{
					Key: "quality", Operator: selector.GreaterThanEqual,
					Value: selector.NumberValue(1),
				},
				{Key: "region", Operator: selector.NotEqual, Value: selector.TextValue("eu")},
			}
		}
	}
	p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}
	var a *assigner
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%benchmarkedClaim == 0 {
			for c := range w.seen.Channels {
				w.seen.Channels[c].Gate.Active.Count = int64(c % 7)
			}
			a = w.assigner()
		}
		t := p.plan(&jobs[i%benchmarkedClaim])
		if d := a.decide(&t); d.State != ledger.Sending {
			b.Fatalf("decision %+v", d)
		}
	}
}

// BenchmarkScopes decides on claims of 500 messages under limits of this many tenants, each over
// all channels and on one.
func BenchmarkScopes(b *testing.B) {
	for _, n := range []int{0, 1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := wideFixture(b, 20, Weighted, LoadRatio)
			for i := range n {
				l := admission.Limit{
					Scope:  admission.Scope{Tenant: fmt.Sprint("tenant-", i)},
					Window: admission.Day, Max: 1 << 40,
				}
				w.routing.Limits = append(w.routing.Limits, l)
				w.routing.Channels[0].Limits = append(w.routing.Channels[0].Limits, l)
			}
			for _, prefix := range []string{"+44", "+4477", "+1"} {
				if n > 0 {
					w.routing.Limits = append(w.routing.Limits,
						admission.Limit{
							Scope:  admission.Scope{Prefix: prefix},
							Window: admission.Day, Max: 1 << 40,
						})
				}
			}
			w.routing.Prepare()
			jobs := jobsNamed("m", benchmarkedClaim)
			for i := range jobs {
				jobs[i].Message.Tenant, jobs[i].Produced = fmt.Sprint("tenant-", i%max(n, 1)), noon
			}
			p := NewPlan(w.routing, testKeys, noon, jobs)
			var a *assigner
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%benchmarkedClaim == 0 {
					w.seen.Scoped = w.shown(p.Request(0, nil).Scopes, nil).Scoped
					a = w.assigner()
				}
				if d := a.decide(&p.Tasks[i%benchmarkedClaim]); d.State != ledger.Sending {
					b.Fatalf("decision %+v", d)
				}
			}
		})
	}
}

// BenchmarkTurns orders a claim of 500 new messages and 250 due rows of this many tenants.
func BenchmarkTurns(b *testing.B) {
	for _, tenants := range []int{1, 100} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			w := newFixture(b)
			tasks, intakes := make([]Task, 750), make([]ledger.Intake, 750)
			for i := range tasks {
				tasks[i] = *w.task("a")
				tasks[i].Row.Tenant, tasks[i].Row.Seq = fmt.Sprint("tenant-", i*7%tenants), int64(i)
				if i >= benchmarkedClaim {
					intakes[i] = ledger.Due
				}
			}
			for b.Loop() {
				ordered(tasks, intakes, noon)
			}
		})
	}
}
