package simulate

import (
	"encoding/json"
	"maps"

	"dispatcher/admission"
)

// readArrivals reads a plain list of numbers, one for each worker of the scenario's region, or a
// list of objects.
func readArrivals(v value, s *Scenario) {
	numbers := false
	counted := maps.Clone(s.Workers)
	var total int64
	for i, item := range v.list() {
		_, number := item.plain.(json.Number)
		if i > 0 && number != numbers {
			item.fail("numbers and objects do not go together: write one kind")
			return
		}
		numbers = number
		a := Arrival{Region: s.Region, First: 1, Last: 1}
		if numbers {
			a.Worker, a.Count = int64(i)+1, item.whole(0, maxArrivals)
		} else {
			a = readArrival(item, s)
		}
		checkArrival(item, s, counted, &a)
		s.Arrivals = append(s.Arrivals, a)
		total += a.Count * int64(a.Last-a.First+1)
		if total > maxArrivals {
			item.fail("with these more than %d messages arrive: take fewer or fewer windows",
				maxArrivals)
			return
		}
	}
}

// readArrival reads one object.
func readArrival(v value, s *Scenario) Arrival {
	a := Arrival{Region: s.Region, First: 1, Last: s.Windows, For: s.Window}
	f := v.fields(arrivalKeys...)
	if region, ok := f["region"]; ok {
		a.Region = region.text()
	}
	if worker, ok := f["worker"]; ok {
		a.Worker = worker.whole(1, maxWorkers)
	}
	if count, ok := f["count"]; ok {
		a.Count = count.whole(0, maxArrivals)
	} else if f != nil {
		v.fail("count is missing: how many messages arrive in each window")
	}
	readWindows(v, f, s, &a)
	readSpread(f, s, &a)
	return a
}

// readWindows reads the windows in which the messages come: all, unless one window or a first and a
// last are given.
func readWindows(v value, f map[string]value, s *Scenario, a *Arrival) {
	one, hasOne := f["window"]
	several, hasSeveral := f["windows"]
	switch {
	case hasOne && hasSeveral:
		v.fail("window and windows exclude each other: keep one")
	case hasOne:
		a.First = int(one.whole(1, int64(s.Windows)))
		a.Last = a.First
	case hasSeveral:
		ends := several.list()
		if len(ends) != 2 {
			several.fail("write the first and the last window, such as [2, 5]")
			return
		}
		a.First = int(ends[0].whole(1, int64(s.Windows)))
		a.Last = int(ends[1].whole(int64(a.First), int64(s.Windows)))
	}
}

// readSpread reads when within a window the messages come, and how unevenly to workers.
func readSpread(f map[string]value, s *Scenario, a *Arrival) {
	if at, ok := f["at"]; ok {
		a.At, a.For = at.duration(0, s.Window-1), 0
	}
	if d, ok := f["for"]; ok {
		a.For = d.duration(0, s.Window-a.At)
	}
	if random, ok := f["random"]; ok {
		a.Random = random.flag()
	}
	if skew, ok := f["skew"]; ok {
		a.Skew = skew.fraction(0, 10)
		if a.Worker > 0 {
			skew.fail("one worker cannot be skewed: leave out worker or skew")
		}
	}
}

// checkArrival checks a region and a worker against the given numbers of processes. A region
// without a given number has as many processes as arrivals name, and at least one.
func checkArrival(v value, s *Scenario, counted map[string]int64, a *Arrival) {
	known, isCounted := counted[a.Region]
	switch {
	case a.Region == "":
		v.fail(`nobody knows where they arrive: add "region"`)
	case a.Region == admission.Anywhere:
		v.fail("%s is not a region where messages arrive", admission.Anywhere)
	case !isCounted && len(counted) > 0 && a.Region != s.Region:
		v.fail("workers has no region %q; %s", a.Region, suggest(a.Region, s.regions()))
	case !isCounted:
		s.Workers[a.Region] = max(s.Workers[a.Region], a.Worker, 1)
	case a.Worker > known:
		v.fail("this is for worker %d of %s, and workers says that it has %d", a.Worker, a.Region,
			known)
	case known == 0 && a.Count > 0:
		v.fail("%s has no worker at which messages could arrive", a.Region)
	}
}
