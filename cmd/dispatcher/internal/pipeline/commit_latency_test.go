package pipeline

import (
	"testing"
	"time"

	"dispatcher/admission"
)

func TestCommitLatencyIsTheSlowestRecentClaimThatIsNoOutlier(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		took []int // ms, one claim after another
		want int
	}{
		"nothing known":                       {nil, 0},
		"one slow claim is all that is known": {[]int{400}, 400},
		"of two, the slow one":                {[]int{400, 20}, 400},
		"one of three is slow":                {[]int{20, 400, 20}, 0},
		"two of three are slow":               {[]int{400, 20, 400}, 0},
		"three of five are slow":              {[]int{400, 20, 400, 20, 400}, 400},
		"a slow database":                     {[]int{400, 380, 420, 390, 400, 410, 400, 400}, 420},
		"a slow database that is not even":    {[]int{120, 200, 280, 160, 130, 240, 150, 190}, 280},
		"a slow one, held up for a moment":    {[]int{200, 210, 200, 900, 190, 200, 200, 200}, 210},
		"just no outlier":                     {[]int{60, 60, 120, 60, 60, 60, 60, 60}, 120},
		"just an outlier":                     {[]int{60, 60, 121, 60, 60, 60, 60, 60}, 60},
		"held up for a moment":                {[]int{20, 20, 400, 400, 20, 20, 20, 20}, 0},
		"held up for a moment just now":       {[]int{20, 20, 20, 20, 20, 20, 400, 400}, 0},
		"became slow":                         {[]int{20, 20, 20, 20, 20, 400, 400, 400}, 400},
		"became quick":                        {[]int{400, 400, 400, 20, 20, 20, 20, 20, 20}, 0},
		"nine, and the first was the slowest": {[]int{
			900, 400, 400, 400, 400, 400, 400, 400,
			400,
		}, 400},
		"what the end of a second leaves": {[]int{49, 49, 49, 49, 49, 49, 49, 49}, 0},
		"just more than that":             {[]int{50, 50, 50, 50, 50, 50, 50, 50}, 50},
		"no more than the longest": {
			[]int{60_000, 60_000},
			int(admission.MaxCommitLatency / time.Millisecond),
		},
	} {
		var l commitLatency
		for _, took := range test.took {
			l.took(millis(took), noon)
		}
		if got := l.get(noon.Add(claimMemory), leastLatency); got != millis(test.want) {
			t.Errorf("%s: commit latency %s, want %s", name, got, millis(test.want))
		}
		if got := l.get(noon.Add(slowMemory*admission.MaxCommitLatency+1), leastLatency); got != 0 {
			t.Errorf("%s: got commit latency %s after a long time without claims", name, got)
		}
	}
}

func TestEachClaimIsForgottenByItself(t *testing.T) {
	t.Parallel()
	var l commitLatency
	l.took(millis(400), noon)
	l.took(millis(100), noon.Add(time.Second))
	for after, want := range map[time.Duration]int{
		claimMemory: 400, claimMemory + 1: 100,
		claimMemory + time.Second: 100, claimMemory + time.Second + 1: 0,
	} {
		if got := l.get(noon.Add(after), leastLatency); got != millis(want) {
			t.Errorf("commit latency %s after %s, want %s", got, after, millis(want))
		}
	}
}

// TestASlowClaimCountsForLonger: if the database is a second away, claims are many seconds apart.
func TestASlowClaimCountsForLonger(t *testing.T) {
	t.Parallel()
	var l commitLatency
	l.took(millis(1500), noon)
	for after, want := range map[time.Duration]int{
		claimMemory + 1:           1500,
		slowMemory * millis(1500): 1500, slowMemory*millis(1500) + 1: 0,
	} {
		if got := l.get(noon.Add(after), leastLatency); got != millis(want) {
			t.Errorf("commit latency %s after %s, want %s", got, after, millis(want))
		}
	}
}

// TestAQuickClaimReplacesASlowOne: in a lane with few claims, one slow commit must not delay
// the otp messages of the next minutes.
func TestAQuickClaimReplacesASlowOne(t *testing.T) {
	t.Parallel()
	var l commitLatency
	l.took(millis(5000), noon)
	l.took(millis(5), noon.Add(15*time.Second))
	if got := l.get(noon.Add(30*time.Second), leastLatency); got != 0 {
		t.Errorf("commit latency %s", got)
	}
}

// TestAClaimThatTookLessThanNoTimeCountsAsNone: the database's clock is not known exactly, so a
// measured duration may be negative.
func TestAClaimThatTookLessThanNoTimeCountsAsNone(t *testing.T) {
	t.Parallel()
	var l commitLatency
	for i := range 8 {
		l.took(-millis(i+1), noon)
	}
	if got := l.get(noon, leastLatency); got != 0 {
		t.Errorf("commit latency %s", got)
	}
}

func TestEachLaneHasItsCommitLatency(t *testing.T) {
	t.Parallel()
	var l commitLatencies
	for range 20 {
		l.took("bulk", millis(300), noon)
		l.took("otp", millis(5), noon)
	}
	for lane, want := range map[string]int{"bulk": 300, "otp": 0, "": 0} {
		if got := l.get(lane, noon, leastLatency); got != millis(want) {
			t.Errorf("commit latency %s of lane %q, want %s", got, lane, millis(want))
		}
	}
}
