package admission_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// waitingRoom is the state in the source's examples: 50 of 200 used, which is a quarter.
func waitingRoom(region string, here int64) *admission.PolicyInput {
	return &admission.PolicyInput{
		Limit: 200, Active: 50, Utilisation: 0.25,
		History: map[string]int64{"San Jose": 20, "London": 30, admission.Anywhere: 150},
		Workers: map[string]int64{region: here}, Total: 10, Region: region,
	}
}

// twoWorkers is the state of two workers that share ten slots of one region, few of them used.
func twoWorkers() *admission.PolicyInput {
	return &admission.PolicyInput{
		Limit: 10, Utilisation: 0.1, History: map[string]int64{"San Jose": 10},
		Workers: map[string]int64{"San Jose": 2}, Total: 2, Region: "San Jose",
	}
}

func TestWorkedNumbersOfTheSource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy admission.Policy
		state  *admission.PolicyInput
		want   admission.Split
	}{
		"even, San Jose: 15/3 + 113/10":       {admission.Even{}, waitingRoom("San Jose", 3), admission.Split{Free: 150, Region: 15, Anywhere: 113, PerWorker: 16}},
		"even, London: 22/1 + 113/10":         {admission.Even{}, waitingRoom("London", 1), admission.Split{Free: 150, Region: 22, Anywhere: 113, PerWorker: 33}},
		"even, Delhi, without history":        {admission.Even{}, waitingRoom("Delhi", 1), admission.Split{Free: 150, Anywhere: 113, PerWorker: 11}},
		"curve, Delhi: 113/2.5":               {admission.Curve{Factor: 1}, waitingRoom("Delhi", 1), admission.Split{Free: 150, Anywhere: 113, PerWorker: 45}},
		"curve, never more than there is":     {admission.Curve{Factor: 1}, waitingRoom("San Jose", 1), admission.Split{Free: 150, Region: 15, Anywhere: 113, PerWorker: 15 + 45}},
		"counter, San Jose alone: 15 + 113":   {admission.CounterPolicy{}, waitingRoom("San Jose", 3), admission.Split{Free: 150, Region: 15, Anywhere: 113, PerWorker: 128}},
		"exact divides nothing":               {admission.Exact{}, waitingRoom("San Jose", 3), admission.Split{Free: 150, Anywhere: 150, PerWorker: 150}},
		"even, two workers":                   {admission.Even{}, twoWorkers(), admission.Split{Free: 10, Region: 10, PerWorker: 5}},
		"curve, two workers: 10/(2x0.1^.204)": {admission.Curve{Factor: 0.204}, twoWorkers(), admission.Split{Free: 10, Region: 10, PerWorker: 8}},
	} {
		if diff := cmp.Diff(tc.want, tc.policy.Split(tc.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// arrive sends messages to the workers of one region and returns how many each admits.
func arrive(p admission.Policy, s *admission.PolicyInput, arrivals ...int) []int {
	split, admitted := p.Split(s), make([]int, len(arrivals))
	shared := admission.Tally{}
	for worker, n := range arrivals {
		shared.Worker = 0
		for range n {
			pool, ok := p.Pool(&split, &shared, 1)
			if !ok {
				break
			}
			shared.Add(pool, 1)
			admitted[worker]++
		}
	}
	return admitted
}

func TestWorkedArrivalsOfTheSource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy   admission.Policy
		arrivals []int
		want     []int
	}{
		"even queues two of 7 + 1":          {admission.Even{}, []int{7, 1}, []int{5, 1}},
		"counter takes all of 7 + 1":        {admission.CounterPolicy{}, []int{7, 1}, []int{7, 1}},
		"exact takes all of 7 + 1":          {admission.Exact{}, []int{7, 1}, []int{7, 1}},
		"curve takes all of 7 + 1":          {admission.Curve{Factor: 0.204}, []int{7, 1}, []int{7, 1}},
		"curve takes 15 of 10 in a spike":   {admission.Curve{Factor: 0.204}, []int{8, 7}, []int{8, 7}},
		"counter takes 10 of 10 in a spike": {admission.CounterPolicy{}, []int{8, 7}, []int{8, 2}},
		"exact takes 10 of 10 in a spike":   {admission.Exact{}, []int{8, 7}, []int{8, 2}},
	} {
		if diff := cmp.Diff(tc.want, arrive(tc.policy, twoWorkers(), tc.arrivals...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := arrive(admission.CounterPolicy{}, waitingRoom("San Jose", 1), 200); got[0] != 128 {
		t.Errorf("one worker alone admits %d by counters, want 128", got[0])
	}
}

func drawState(t *rapid.T) *admission.PolicyInput {
	most := rapid.SampledFrom([]int64{10, 300_000, 1 << 40}).Draw(t, "most")
	s := &admission.PolicyInput{
		Limit: rapid.Int64Range(0, most).Draw(t, "limit"), Active: rapid.Int64Range(0, most).Draw(t, "active"),
		Utilisation: rapid.Float64Range(0, 1).Draw(t, "utilisation"),
		History:     map[string]int64{}, Workers: map[string]int64{}, Region: "a",
	}
	for _, region := range []string{"a", "b", "c", admission.Anywhere} {
		if rapid.Bool().Draw(t, "seen") {
			s.History[region] = rapid.Int64Range(0, most).Draw(t, "history")
		}
		if region != admission.Anywhere {
			s.Workers[region] = rapid.Int64Range(0, 50).Draw(t, "workers")
			s.Total += s.Workers[region]
		}
	}
	return s
}

// TestNothingIsHandedOutTwice holds for every policy except curve, which hands out slots twice by
// design.
func TestNothingIsHandedOutTwice(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := drawState(t)
		free := max(s.Limit-s.Active, 0)
		var even, regions, anywhere int64
		for _, region := range []string{"a", "b", "c"} {
			s.Region = region
			split := admission.Even{}.Split(s)
			even += split.PerWorker * s.Workers[region]
			regions += split.Region
			anywhere = split.Anywhere
			counter := admission.CounterPolicy{}.Split(s)
			if split.Free != free || counter.Region != split.Region || counter.Anywhere != split.Anywhere || counter.PerWorker != split.Region+split.Anywhere {
				t.Fatalf("%+v, %+v of %d", split, counter, free)
			}
			curve := admission.Curve{Factor: 1}.Split(s)
			if s.Workers[region] > 0 && (curve.PerWorker < split.PerWorker || curve.PerWorker > split.Region+split.Anywhere) {
				t.Fatalf("curve allows %d, even %d, of %d for the region and %d for any", curve.PerWorker, split.PerWorker, split.Region, split.Anywhere)
			}
		}
		if regions+anywhere != free {
			t.Fatalf("regions have %d and any has %d, want %d in all", regions, anywhere, free)
		}
		if even > free {
			t.Fatalf("policy even grants %d of %d", even, free)
		}
	})
}

// TestPoolsNeverHoldMoreThanTheirPart takes random amounts until nothing more is granted.
func TestPoolsNeverHoldMoreThanTheirPart(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := drawState(t)
		p := rapid.SampledFrom([]admission.Policy{admission.Even{}, admission.Curve{Factor: 0.5}, admission.CounterPolicy{}, admission.Exact{}}).Draw(t, "policy")
		split := p.Split(s)
		var tally admission.Tally
		for range 100 {
			units := rapid.Int64Range(1, max(split.Free/20, 1)).Draw(t, "units")
			if pool, ok := p.Pool(&split, &tally, units); ok {
				tally.Add(pool, units)
			}
		}
		if taken := tally.Worker + tally.Region + tally.Anywhere; taken > split.PerWorker || tally.Region > split.Region || tally.Worker > split.PerWorker {
			t.Fatalf("%s: %+v of %+v", p, tally, split)
		}
	})
}

func TestWordsOfPolicies(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"even", "curve", "counter", "exact"} {
		if p, err := admission.ParsePolicy(word, 1); err != nil || p.String() != word {
			t.Errorf("%s: %v, %v", word, p, err)
		}
	}
	if p, err := admission.ParsePolicy("", 0); err != nil || p != (admission.Exact{}) {
		t.Errorf("without a word: %v, %v", p, err)
	}
	if _, err := admission.ParsePolicy("odd", 1); err == nil {
		t.Error("policy odd was accepted")
	}
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := admission.ParsePolicy("curve", factor); err == nil {
			t.Errorf("curve_factor %v was accepted", factor)
		}
	}
}

// divided returns an account of a limit per minute under a policy.
func divided(p admission.Policy, s *admission.PolicyInput) []admission.Account {
	accounts := full(admission.Limit{Window: admission.Minute, Max: s.Limit, Unit: admission.Segments}, noon)
	accounts[0].Policy, accounts[0].Split = p, p.Split(s)
	return accounts
}

// admitAll lets one worker take until a limit stops it, and returns the count.
func admitAll(accounts []admission.Account, w admission.Worker, need admission.Need) (taken int, e *admission.Exclusion) {
	m := moment(noon)
	m.Worker = w
	for taken < 1000 {
		if _, e = take(m, accounts, &need); e != nil {
			return taken, e
		}
		taken++
	}
	return taken, nil
}

// TestPoliciesOnlyQueueEarlier shares the counter among processes: a policy may grant more than the
// limit, the counter does not.
func TestPoliciesOnlyQueueEarlier(t *testing.T) {
	t.Parallel()
	one := admission.Need{Segments: 1}
	for name, tc := range map[string]struct {
		policy        admission.Policy
		first, second int
		why           admission.Why
	}{
		"even":    {admission.Even{}, 5, 5, admission.Unshared},
		"curve":   {admission.Curve{Factor: 0.204}, 8, 2, admission.Full},
		"counter": {admission.CounterPolicy{}, 10, 0, admission.Full},
		"exact":   {admission.Exact{}, 10, 0, admission.Full},
	} {
		accounts := divided(tc.policy, twoWorkers())
		first, _ := admitAll(accounts, admission.Worker{ID: 1, Region: "San Jose"}, one)
		second, e := admitAll(accounts, admission.Worker{ID: 2, Region: "San Jose"}, one)
		if first != tc.first || second != tc.second {
			t.Errorf("%s: %d and %d, want %d and %d", name, first, second, tc.first, tc.second)
		}
		if name != "even" && e.Why != tc.why {
			t.Errorf("%s: %v", name, e.Why)
		}
	}
}

func TestShareOfAnotherPoolStaysUntouched(t *testing.T) {
	t.Parallel()
	accounts := divided(admission.CounterPolicy{}, &admission.PolicyInput{
		Limit: 20, History: map[string]int64{"a": 10, "b": 5, admission.Anywhere: 5}, Workers: map[string]int64{"a": 1, "b": 1}, Total: 2, Region: "a",
	})
	taken, e := admitAll(accounts, admission.Worker{ID: 1, Region: "a"}, admission.Need{Segments: 1})
	if taken != 15 || e.Why != admission.Unshared {
		t.Errorf("region a took %d (%v), want its 10 and the 5 of any", taken, e.Why)
	}
	want := map[string]int64{"region:a": 10, "anywhere": 5}
	if diff := cmp.Diff(want, accounts[0].Taken); diff != "" {
		t.Error(diff)
	}
}

// TestOneMessageFitsIntoAnEmptyShare: a message larger than every share must not wait forever.
func TestOneMessageFitsIntoAnEmptyShare(t *testing.T) {
	t.Parallel()
	for _, p := range []admission.Policy{admission.Even{}, admission.Curve{Factor: 1}, admission.CounterPolicy{}} {
		s := &admission.PolicyInput{
			Limit: 10, Utilisation: 1, History: map[string]int64{"a": 1, "b": 8, admission.Anywhere: 1},
			Workers: map[string]int64{"a": 1, "b": 19}, Total: 20, Region: "a",
		}
		accounts := divided(p, s)
		taken, e := admitAll(accounts, admission.Worker{ID: 1, Region: "a"}, admission.Need{Segments: 3})
		if taken != 1 || e.Why != admission.Unshared {
			t.Errorf("%s: %d messages of 3 segments (%+v)", p, taken, e)
		}
	}
}

// TestAnInstanceWithoutAShareTriesAgainWhenTheStateIsNew or when the window ends, whichever is
// first.
func TestAnInstanceWithoutAShareTriesAgainWhenTheStateIsNew(t *testing.T) {
	t.Parallel()
	for now, want := range map[time.Time]time.Duration{noon: 2 * time.Second, noon.Add(29 * time.Second): time.Second} {
		accounts := divided(admission.Even{}, twoWorkers())
		m, n := moment(now), admission.Need{Segments: 5}
		m.Worker = admission.Worker{ID: 1, Region: "San Jose"}
		if _, e := take(m, accounts, &n); e != nil {
			t.Fatalf("%+v", e)
		}
		if _, e := take(m, accounts, &n); e == nil || e.Why != admission.Unshared || !e.When.Equal(now.Add(want)) {
			t.Errorf("at %s: %+v, want after %s", now, e, want)
		}
	}
}

// TestUtilisationCountsFromNothingToAll: a value outside 0 to 1, caused by rounding, neither
// starves a process nor grants it more than there is.
func TestUtilisationCountsFromNothingToAll(t *testing.T) {
	t.Parallel()
	for utilisation, as := range map[float64]float64{-0.3: 0, -1: 0, 1.01: 1, 40: 1} {
		for _, factor := range []float64{0.5, 1, 2} {
			odd, even := waitingRoom("San Jose", 3), waitingRoom("San Jose", 3)
			odd.Utilisation, even.Utilisation = utilisation, as
			c := admission.Curve{Factor: factor}
			if diff := cmp.Diff(c.Split(even), c.Split(odd)); diff != "" {
				t.Errorf("utilisation %v with factor %v differs from %v: %s", utilisation, factor, as, diff)
			}
		}
	}
}

// TestTalliesNameWhatATakeCountsApart covers every policy and lane: slots that are freed must
// return to the tally they came from.
func TestTalliesNameWhatATakeCountsApart(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := drawState(t)
		p := rapid.SampledFrom([]admission.Policy{nil, admission.Even{}, admission.Curve{Factor: 0.5}, admission.CounterPolicy{}, admission.Exact{}}).Draw(t, "policy")
		limit := admission.Limit{Window: admission.Day, Max: s.Limit, Unit: admission.Money, Reserve: []admission.Reserve{{Lane: "otp", Percent: 30}}}
		accounts, m := full(limit, noon), moment(noon)
		if p != nil {
			accounts[0].Policy, accounts[0].Split = p, p.Split(s)
		}
		want := map[string]int64{}
		for range 30 {
			m.Worker = admission.Worker{ID: rapid.Int64Range(1, 3).Draw(t, "worker"), Region: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "region")}
			n := admission.Need{
				Lane: rapid.SampledFrom([]string{"otp", "bulk"}).Draw(t, "lane"), Segments: 1, Micros: rapid.Int64Range(1, max(s.Limit/10, 1)).Draw(t, "micros"),
			}
			apart := accounts[0].Tallies(m, &n)
			if _, e := take(m, accounts, &n); e != nil {
				continue
			}
			for _, name := range []string{apart.Lane, apart.Pool} {
				if name != "" {
					want[name] += n.Micros
				}
			}
			if diff := cmp.Diff(want, accounts[0].Taken, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("tallies for %+v: %s", apart, diff)
			}
		}
	})
}
