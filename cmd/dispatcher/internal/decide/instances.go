package decide

import (
	"dispatcher/admission"
	"dispatcher/ledger"
)

// Instances is what the live processes granted in the last whole minute, read a moment ago. It does
// not change once it is in use.
type Instances struct {
	Workers map[string]int64                    // by region
	Total   int64                               // of workers
	Granted map[string]map[string]ledger.Grants // by channel, then by region
}

// Join adds one live process, and what it granted in the last whole minute by channel.
func (i *Instances) Join(region string, granted map[string]ledger.Grants) {
	if i.Workers == nil {
		i.Workers, i.Granted = map[string]int64{}, map[string]map[string]ledger.Grants{}
	}
	i.Workers[region]++
	i.Total++
	for channel, n := range granted {
		if i.Granted[channel] == nil {
			i.Granted[channel] = map[string]ledger.Grants{}
		}
		i.Granted[channel][region] = i.Granted[channel][region].Plus(n)
	}
}

// spare sets the least part of a minute's capacity, 1/spare, that counts as unused, so that a
// region without traffic so far finds slots.
const spare = 10

// State is the input of a policy that divides a counter of a channel. It divides the whole window;
// what was taken of it is in the counter's tallies.
//
// The history is in the counter's unit per minute, whatever the window, so the limit is converted
// to a minute. Only the shares matter.
func (i *Instances) State(
	channel string, c *admission.Counter, region string,
) admission.PolicyInput {
	s := admission.PolicyInput{
		Limit: c.Max, Region: region, Workers: map[string]int64{region: 1}, Total: 1,
		History: map[string]int64{},
	}
	if i != nil && i.Total > 0 {
		s.Workers, s.Total = i.Workers, i.Total
	}
	var sum int64
	if i != nil {
		for region, granted := range i.Granted[channel] {
			n := unitsOf(granted, c.Unit)
			s.History[region] = n
			sum += n
		}
	}
	capacity := perMinute(c)
	s.History[admission.Anywhere] = max(capacity-sum, capacity/spare, 1)
	s.Utilisation = min(1, float64(sum)/float64(capacity))
	return s
}

// unitsOf is what was granted in the unit of a limit.
func unitsOf(g ledger.Grants, u admission.Unit) int64 {
	switch u {
	case admission.Segments:
		return g.Segments
	case admission.Money:
		return g.Micros
	case admission.Messages:
	}
	return g.Messages
}

// perMinute is what a counter allows in a minute, at least 1.
func perMinute(c *admission.Counter) int64 {
	if window := int64(c.Window.Seconds()); window > 60 {
		return max(c.Max/(window/60), 1)
	} else if window > 0 {
		return max(c.Max*(60/window), 1)
	}
	return max(c.Max, 1)
}
