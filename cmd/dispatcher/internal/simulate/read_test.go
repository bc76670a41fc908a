package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Read("s.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	got := read(t, `{
		"description": "all", "limit": 200, "active": 50, "utilisation": 0.3, "history": {"a": 20, "Anywhere": 180},
		"workers": {"a": 3, "b": 1, "total": 10}, "region": "a", "curve_factor": 0.5, "window": "1h", "windows": 4,
		"state_interval": "5s", "call_ms": {"near": 0.5, "far": 70}, "home": "b", "seed": 7,
		"arrivals": [
			{"count": 5},
			{"region": "b", "worker": 1, "count": 6, "window": 2, "at": "10s"},
			{"count": 7, "windows": [3, 4], "at": "1m", "for": "2m", "random": true, "skew": 1.5}
		]
	}`)
	want := &Scenario{
		Description: "all", Limit: 200, Active: 50, Utilisation: 0.3,
		History: map[string]int64{"a": 20, "Anywhere": 180},
		Workers: map[string]int64{"a": 3, "b": 1}, Total: 10, Region: "a", CurveFactor: 0.5,
		Window: time.Hour, Windows: 4,
		StateInterval: 5 * time.Second, Near: 500 * time.Microsecond, Far: 70 * time.Millisecond,
		Home: "b", Seed: 7,
		Arrivals: []Arrival{
			{Region: "a", Count: 5, First: 1, Last: 4, For: time.Hour},
			{Region: "b", Worker: 1, Count: 6, First: 2, Last: 2, At: 10 * time.Second},
			{
				Region: "a", Count: 7, First: 3, Last: 4, At: time.Minute, For: 2 * time.Minute,
				Random: true, Skew: 1.5,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsLeftOutHasADefault(t *testing.T) {
	t.Parallel()
	got := read(t, `{"limit": 200, "active": 50, "region": "a", "arrivals": [7, 1]}`)
	want := &Scenario{
		Limit: 200, Active: 50, Utilisation: 0.25, History: map[string]int64{},
		Workers: map[string]int64{"a": 2}, Total: 2, Region: "a",
		CurveFactor: 1, Window: time.Minute, Windows: 1, StateInterval: 2 * time.Second,
		Near: time.Millisecond, Far: 60 * time.Millisecond, Seed: 1,
		Arrivals: []Arrival{
			{Region: "a", Worker: 1, Count: 7, First: 1, Last: 1},
			{Region: "a", Worker: 2, Count: 1, First: 1, Last: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := read(t, `{"limit": 1, "history": {"London": 5}, "arrivals": `+
		`[1]}`); s.Region != "London" || s.Arrivals[0].Region != "London" {
		t.Errorf("the only region of the history is not that of the arrivals: %+v", s)
	}
}

func TestProblemsNameFileLineAndKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"limit": 1, "activ": 3}`: `s.json:1: activ: unknown key; did you mean active?`,
		"{\"limit\": 1,\n\n\"zzzzzz\": 3}": `s.json:3: zzzzzz: unknown key; known are ` +
			`description, limit,`,
		`{}`:                               `s.json:1: limit is missing`,
		`[]`:                               `s.json:1: this is not an object`,
		`{"limit": -1}`:                    `limit: write a whole number from 0 to 1099511627776`,
		`{"limit": 1.5}`:                   `limit: write a whole number`,
		`{"limit": "1"}`:                   `limit: write a whole number`,
		`{"limit": 1, "limit": 2}`:         `key "limit" stands twice`,
		`{"limit": 1} {}`:                  `more follows`,
		`{"limit": 1`:                      `the document ends too early`,
		``:                                 `s.json:1: the document ends too early`,
		"{\n\"limit\": oops}":              `s.json:2: this is not JSON`,
		`{"limit": 1, "utilisation": 1.1}`: `utilisation: write a number from 0 to 1`,
		`{"limit": 1, "curve_factor": 0}`:  `curve_factor: policy curve needs a factor above 0`,
		`{"limit": 1, "curve_factor": "x"}`: `curve_factor: policy curve needs a factor above ` +
			`0: write a number up to 1000, such as 1`,
		`{"limit": 1, "curve_factor": 1001}`: `curve_factor: policy curve needs a factor above ` +
			`0: write a number up to 1000`,
		`{"limit": 1, "region": 3}`: `region: write a text in quotes`,
		`{"limit": 1, "region": "Anywhere"}`: `region: Anywhere is the name of what belongs to ` +
			`no region`,
		`{"limit": 1, "history": {"a": -1}}`: `history.a: write a whole number`,
		`{"limit": 1, "workers": {"a": 3, "total": 2}}`: `workers: total is 2, and ` +
			`the regions have 3`,
		`{"limit": 1, "workers": {"a": 600, "b": 600}}`: `1200 processes are more ` +
			`than 1000`,
		`{"limit": 1, "window": "2s"}`: `window: window "2s" is none ` +
			`of 1s, 1m, 1h, 1d`,
		`{"limit": 1, "windows": 0}`: `windows: write a whole ` +
			`number from 1 to 1000`,
		`{"limit": 1, "state_interval": 2}`: `state_interval: write a ` +
			`time from 1ms to 24h0m0s, such as "2s"`,
		`{"limit": 1, "call_ms": {"fat": 2}}`: `call_ms.fat: unknown key; ` +
			`did you mean far?`,
		`{"limit": 1, "workers": {"London": 1}, "home": "Lodon"}`: `home: no region is called ` +
			`"Lodon"; did you mean London?`,

		`{"limit": 1, "region": "Lodon", "workers": {"London": ` +
			`1}}`: `region: neither workers nor history has ` +
			`"Lodon"; did you mean London?`,
		`{"limit": 1, "region": "Delhi", "workers": {"London": 1}, "history": {"San Jose": ` +
			`2}}`: `region: neither workers nor history has "Delhi"; known are London, San Jose`,
		`{"limit": 1, "region": "San Jsoe", "workers": {"total": 3}, "history": {"San Jose": ` +
			`2}}`: `region: neither workers nor history has "San Jsoe"; did you mean San Jose?`,
		`{"limit": 1, "arrivals": ` +
			`3}`: `arrivals: this ` +
			`is not a list`,
		`{"limit": 1, "arrivals": ` +
			`[3]}`: `arrivals[0]: ` +
			`nobody knows where they arrive: add "region"`,
		`{"limit": 1, "region": "a", "arrivals": [3, {"count": ` +
			`1}]}`: `arrivals[1]: numbers and objects do not go ` +
			`together`,
		`{"limit": 1, "region": "a", "workers": {"a": 1}, "arrivals": [3, ` +
			`4]}`: `arrivals[1]: this is for worker 2 of a, and workers ` +
			`says that it has 1`,
		`{"limit": 1, "region": "a", "workers": {"a": 0}, "arrivals": [{"count": ` +
			`1}]}`: `arrivals[0]: a has no worker`,
		`{"limit": 1, "region": "a", "arrivals": [{"cuont": ` +
			`1}]}`: `arrivals[0].cuont: unknown key; did you ` +
			`mean count?`,
		`{"limit": 1, "region": "a", "arrivals": ` +
			`[{}]}`: `arrivals[0]: count is missing`,
		`{"limit": 1, "workers": {"London": 1}, "arrivals": [{"region": "Londn", "count": ` +
			`1}]}`: `arrivals[0]: workers has no region "Londn"; did you mean London?`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "window": ` +
			`2}]}`: `arrivals[0].window: write a whole number from 1 to 1`,
		`{"limit": 1, "region": "a", "windows": 3, "arrivals": [{"count": 1, "windows": [3, ` +
			`2]}]}`: `arrivals[0].windows[1]: write a whole number from 3 to 3`,
		`{"limit": 1, "region": "a", "windows": 3, "arrivals": [{"count": 1, "windows": ` +
			`[3]}]}`: `write the first and the last window`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "window": 1, "windows": [1, ` +
			`1]}]}`: `window and windows exclude each other`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "at": ` +
			`"60s"}]}`: `arrivals[0].at: write a time from 0s to 59.999999999s`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "at": "50s", "for": ` +
			`"11s"}]}`: `arrivals[0].for: write a time from 0s to 10s`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "random": ` +
			`1}]}`: `arrivals[0].random: write true or false`,
		`{"limit": 1, "region": "a", "arrivals": [{"count": 1, "worker": 1, "skew": ` +
			`1}]}`: `arrivals[0].skew: one worker cannot be skewed`,
		`{"limit": 1, "region": "a", "windows": 100, "arrivals": [{"count": ` +
			`10001}]}`: `arrivals[0]: with these more than 1000000 messages arrive`,
	} {
		_, err := Read("s.json", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "s.json:") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestARegionWithoutEarlierArrivalsNeedsNoHistory: nor workers, unless the file says where workers
// are.
func TestARegionWithoutEarlierArrivalsNeedsNoHistory(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"limit": 1, "region": "Delhi"}`,
		`{"limit": 1, "region": "Delhi", "workers": {"Delhi": 1}, "history": {"San Jose": 2}}`,
		`{"limit": 1, "region": "Delhi", "workers": {"total": 3}, "history": {"San Jose": 2, ` +
			`"Anywhere": 5}}`,
	} {
		if s := read(t, text); s.Region != "Delhi" {
			t.Errorf("%s: got %+v, want Region %v", text, s, "Delhi")
		}
	}
}

func TestAProblemIsReportedOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"limit": 1, "curve_factor": "x"}`,
		`{"limit": 1, "curve_factor": 0}`, `{"limit": 1, "region": 3, "workers": {"London": 1}}`,
	} {
		if _, err := Read("s.json", []byte(text)); err == nil || strings.Contains(err.Error(),
			"\n") {
			t.Errorf("%s: %v, want one line", text, err)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Read("s.json", []byte("{\"limit\": -1,\n\"windows\": 0,\n\"seed\": true}"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v, want a line for each of three", err)
	}
}

// FuzzRead: everything that can be read can be replayed and drawn.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"limit": 10, "region": "a", "workers": {"a": 2, "total": 2}, "history": ` +
		`{"a": 10}, "arrivals": [7, 1]}`))
	f.Add([]byte(`{"limit": 9, "windows": 3, "region": "a", "arrivals": [{"count": 4, "skew": ` +
		`2}, {"count": 5, "at": "3s", "random": true}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Read("s.json", raw)
		if err != nil {
			return
		}
		for i := range s.Arrivals { // large sizes would only make the fuzzer slow
			s.Arrivals[i].Count = min(s.Arrivals[i].Count, 100)
			s.Arrivals[i].Last = min(s.Arrivals[i].Last, s.Arrivals[i].First+3)
		}
		events := s.Events()
		var outcomes []Outcome
		for _, p := range s.Policies() {
			o := s.Replay(p, events)
			if o.Admitted+o.Queued != int64(len(events)) || o.Early > o.Queued ||
				o.Over > o.Admitted {
				t.Fatalf("%+v of %d", o.Traffic, len(events))
			}
			outcomes = append(outcomes, o)
		}
		if _, err := Plot(s, outcomes); err != nil {
			t.Fatal(err)
		}
	})
}
