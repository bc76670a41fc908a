package admission_test

import (
	"fmt"
	"testing"
	"time"

	"dispatcher/admission"
)

// BenchmarkFitAndTake admits one message under several limits, as a claim does.
func BenchmarkFitAndTake(b *testing.B) {
	plain := func(w admission.Window) admission.Limit { return admission.Limit{Window: w, Max: 1 << 40} }
	sliding := plain(admission.Minute)
	sliding.Sliding, sliding.Burst = true, 1<<39
	reserved := plain(admission.Hour)
	reserved.Reserve = []admission.Reserve{{Lane: "otp", Percent: 20}}
	kinds := map[string][]admission.Limit{
		"calendar": {plain(admission.Minute), plain(admission.Hour), plain(admission.Day), plain(admission.Second)},
		"sliding":  {sliding},
		"reserved": {reserved},
	}
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		b.Fatal(err)
	}
	for kind, limits := range kinds {
		for _, n := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				var accounts []admission.Account
				for i := range n {
					c := &admission.Counter{Limit: limits[i%len(limits)]}
					c.Roll(noon, london)
					accounts = append(accounts, admission.Account{Counter: c, Rate: 1})
				}
				m, need := moment(noon), admission.Need{Lane: "otp", Segments: 1}
				m.Zone = london
				b.ReportAllocs()
				for b.Loop() {
					if _, e := take(m, accounts, &need); e != nil {
						b.Fatal(e)
					}
				}
			})
		}
	}
}

func BenchmarkPolicies(b *testing.B) {
	state := waitingRoom("San Jose", 3)
	state.Limit = 1 << 40
	for _, p := range []admission.Policy{admission.Even{}, admission.Curve{Factor: 1}, admission.CounterPolicy{}, admission.Exact{}} {
		b.Run(p.String(), func(b *testing.B) {
			accounts := full(admission.Limit{Window: admission.Minute, Max: 1 << 40}, noon)
			accounts[0].Policy, accounts[0].Split = p, p.Split(state)
			m, need := moment(noon), admission.Need{Segments: 1}
			m.Worker = admission.Worker{ID: 712, Region: "San Jose"}
			b.ReportAllocs()
			for b.Loop() {
				if _, e := take(m, accounts, &need); e != nil {
					b.Fatal(e)
				}
			}
		})
	}
}
