package simulate

import (
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/provider/settings"
)

// Defaults of a scenario.
const (
	defaultCurveFactor   = 1
	defaultStateInterval = 2 * time.Second
	defaultNear          = time.Millisecond
	defaultFar           = 60 * time.Millisecond
)

var (
	scenarioKeys = []string{
		"description", "limit", "active", "utilisation", "history", "workers", "region",
		"curve_factor",
		"window", "windows", "state_interval", "call_ms", "home", "seed", "arrivals",
	}
	callKeys    = []string{"near", "far"}
	arrivalKeys = []string{
		"region", "worker", "count", "window", "windows", "at", "for", "random", "skew",
	}
)

// Read reads a scenario. Its error has a line for each problem: file, line, key, what is wrong and
// how to fix it.
func Read(name string, raw []byte) (*Scenario, error) {
	all := &problems{name: name}
	root, err := parse(raw, all)
	if err != nil {
		return nil, err
	}
	s := readScenario(root)
	if len(all.list) > 0 {
		return nil, all
	}
	return s, nil
}

func readScenario(v value) *Scenario {
	s := &Scenario{
		CurveFactor: defaultCurveFactor, StateInterval: defaultStateInterval,
		Near: defaultNear, Far: defaultFar, Seed: 1,
		History: map[string]int64{}, Workers: map[string]int64{}, Window: time.Minute, Windows: 1,
	}
	f := v.fields(scenarioKeys...)
	if f == nil {
		return s
	}
	readLimit(v, f, s)
	readRegions(f, s)
	checkRegion(f, s)
	readCourse(f, s)
	if arrivals, ok := f["arrivals"]; ok {
		readArrivals(arrivals, s)
	}
	checkWorkers(v, f, s)
	return s
}

// readLimit reads the limit and how much of it is in use.
func readLimit(v value, f map[string]value, s *Scenario) {
	if d, ok := f["description"]; ok {
		s.Description = d.text()
	}
	limit, ok := f["limit"]
	if !ok {
		v.fail(`limit is missing: how many messages may be admitted in a window, such as ` +
			`"limit": 200`)
	} else {
		s.Limit = limit.whole(0, maxLimit)
	}
	if active, ok := f["active"]; ok {
		s.Active = active.whole(0, maxLimit)
	}
	if s.Limit > 0 {
		s.Utilisation = min(float64(s.Active)/float64(s.Limit), 1)
	}
	if u, ok := f["utilisation"]; ok {
		s.Utilisation = u.fraction(0, 1)
	}
	if c, ok := f["curve_factor"]; ok {
		s.CurveFactor = readFactor(c)
	}
}

// readFactor reads the exponent of policy curve.
func readFactor(v value) float64 {
	f, ok := v.number()
	if !ok || f <= 0 || f > maxFactor {
		v.fail("policy curve needs a factor above 0: write a number up to %d, such as 1", maxFactor)
		return defaultCurveFactor
	}
	return f
}

// readRegions reads the regions that share the limit.
func readRegions(f map[string]value, s *Scenario) {
	if region, ok := f["region"]; ok {
		if s.Region = region.text(); s.Region == admission.Anywhere {
			region.fail("%s is the name of what belongs to no region", admission.Anywhere)
		}
	}
	if history, ok := f["history"]; ok {
		for region, n := range history.fields() {
			s.History[region] = n.whole(0, maxLimit)
		}
	}
	if workers, ok := f["workers"]; ok {
		for region, n := range workers.fields() {
			if region == "total" {
				s.Total = n.whole(0, maxWorkers)
			} else {
				s.Workers[region] = n.whole(0, maxWorkers)
			}
		}
	}
	// the empty region and the only other one
	if only := s.regions(); len(only) == 2 && s.Region == "" {
		s.Region = only[1]
	}
	if home, ok := f["home"]; ok {
		s.Home = home.text()
	}
}

// readCourse reads the windows and intervals.
func readCourse(f map[string]value, s *Scenario) {
	if w, ok := f["window"]; ok {
		window, err := admission.ParseWindow(w.text())
		if err != nil {
			w.fail("%v", err)
			window = admission.Minute
		}
		s.Window = time.Duration(window)
	}
	if w, ok := f["windows"]; ok {
		s.Windows = int(w.whole(1, maxWindows))
	}
	if i, ok := f["state_interval"]; ok {
		s.StateInterval = i.duration(time.Millisecond, 24*time.Hour)
	}
	if c, ok := f["call_ms"]; ok {
		calls := c.fields(callKeys...)
		s.Near, s.Far = milliseconds(calls, "near", s.Near), milliseconds(calls, "far", s.Far)
	}
	if seed, ok := f["seed"]; ok {
		s.Seed = uint64(seed.whole(0, maxLimit))
	}
}

func milliseconds(f map[string]value, key string, otherwise time.Duration) time.Duration {
	v, ok := f[key]
	if !ok {
		return otherwise
	}
	return time.Duration(v.fraction(0, 60_000) * float64(time.Millisecond))
}

// checkRegion refuses a region that nothing else mentions. If no workers are given, it may be a
// region without traffic so far, unless another region has nearly the same name.
func checkRegion(f map[string]value, s *Scenario) {
	region, ok := f["region"]
	if !ok || s.Region == "" || s.Region == admission.Anywhere {
		return
	}
	known := s.named()
	isNew := len(s.Workers) == 0 && settings.Nearest(s.Region, known) == ""
	if len(known) == 0 || slices.Contains(known, s.Region) || isNew {
		return
	}
	region.fail("neither workers nor history has %q; %s", s.Region, suggest(s.Region, known))
}

// checkWorkers completes the numbers of processes and checks that they agree.
func checkWorkers(v value, f map[string]value, s *Scenario) {
	var sum int64
	for _, n := range s.Workers {
		sum += n
	}
	workers := f["workers"]
	switch {
	case s.Total == 0:
		s.Total = max(sum, 1)
	case s.Total < sum:
		workers.fail("total is %d, and the regions have %d", s.Total, sum)
	}
	if s.Home != "" && !slices.Contains(s.regions(), s.Home) {
		f["home"].fail("no region is called %q; %s", s.Home, suggest(s.Home, s.regions()))
	}
	if s.Total > maxWorkers {
		v.fail("%d processes are more than %d", s.Total, maxWorkers)
	}
}
