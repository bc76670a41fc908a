package steer

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// RampKind says what is to be done about a ramp.
type RampKind string

// Kinds of RampMove.
const (
	RampWait      RampKind = "wait"      // nothing now
	RampStep      RampKind = "step"      // put Weights into the document
	RampHold      RampKind = "hold"      // stop here until an operator resumes it
	RampSupersede RampKind = "supersede" // end it: somebody else has set the weights
	RampFinished  RampKind = "finished"  // it will never move again
)

// RampMove is the next thing to do about a ramp.
type RampMove struct {
	Kind RampKind
	// Step is the number of the step to make, from 1, and Weights are those that it gives to the
	// channels that the ramp names.
	Step    int
	Weights []config.Weight
	// Reason is a sentence for the record, for any kind but RampWait.
	Reason string
}

// NextRampMove decides what is to be done about a ramp now. routing is the current one; carried is
// what its route carried since r.ChangedAt, nil to skip the check of the band.
//
// A ramp, running or held, is superseded when somebody else has changed the weights that its last
// step set. Channels that the ramp does not name may change. A running ramp whose figures have left
// the band is held at once, before its next step is due. Only an operator resumes a held ramp.
func NextRampMove(
	r *ledger.Ramp, routing *config.Routing, carried []ledger.Carried, now time.Time,
) RampMove {
	if r.State.Final() || r.Step >= r.Steps {
		return RampMove{Kind: RampFinished, Reason: "it has ended"}
	}
	path, err := newPath(r)
	if err != nil {
		return holdUnlessHeld(r, err.Error())
	}
	if why := Departure(r, routing); why != "" {
		return RampMove{Kind: RampSupersede, Reason: why}
	}
	route := routing.Route(r.Route)
	if why := outOfBand(r, route, carried); why != "" {
		return holdUnlessHeld(r, why)
	}
	if r.State != ledger.RampRunning || now.Before(r.NextAt) {
		return RampMove{Kind: RampWait}
	}
	return RampMove{
		Kind: RampStep, Step: r.Step + 1, Weights: path.weights(route, r.Step+1),
		Reason: fmt.Sprintf("step %d of %d", r.Step+1, r.Steps),
	}
}

// Departure says which weights of a routing differ from those that the ramp's last step set. Such
// a routing ends the ramp. It is empty when none differ.
func Departure(r *ledger.Ramp, routing *config.Routing) string {
	route := routing.Route(r.Route)
	if route == nil || len(route.Weights) == 0 {
		return fmt.Sprintf("route %s has no weights any more", r.Route)
	}
	path, err := newPath(r)
	if err != nil {
		return "" // an unreadable path holds the ramp, see NextRampMove
	}
	return path.departure(route, r.Step)
}

func holdUnlessHeld(r *ledger.Ramp, why string) RampMove {
	if r.State != ledger.RampRunning {
		return RampMove{Kind: RampWait}
	}
	return RampMove{Kind: RampHold, Reason: why}
}

// stepDecimals is how many more decimals the weights of a step may have than the most precise
// weight at the ramp's ends. Few, so that documents stay readable: the steps from 25 to 30 in three
// are 26.667, 28.333 and 30.
const stepDecimals = 3

// path computes the weights of a ramp at each step.
type path struct {
	from, to map[string]selector.Weight
	steps    int
	places   int // decimals of the weights between the ends
}

func newPath(r *ledger.Ramp) (path, error) {
	p := path{steps: r.Steps}
	var err error
	if p.from, err = parse(r.From); err != nil {
		return p, err
	}
	if p.to, err = parse(r.To); err != nil {
		return p, err
	}
	for channel, w := range p.from { // a channel that To does not name stays
		if _, named := p.to[channel]; !named {
			p.to[channel] = w
		}
	}
	most := 0
	larger := new(big.Rat)
	for _, end := range []map[string]selector.Weight{p.from, p.to} {
		sum := new(big.Rat)
		for _, w := range end {
			most = max(most, w.Decimals())
			sum.Add(sum, w.Rat())
		}
		if sum.Cmp(larger) > 0 {
			larger = sum
		}
	}
	p.places = selector.Places(most+stepDecimals, larger)
	return p, nil
}

func parse(texts map[string]string) (map[string]selector.Weight, error) {
	out := make(map[string]selector.Weight, len(texts))
	for channel, text := range texts {
		w, err := selector.ParseWeight(text)
		if err != nil {
			return nil, fmt.Errorf("the ramp's weight of channel %s cannot be used: %w", channel,
				err)
		}
		out[channel] = w
	}
	return out, nil
}

// at is the weight of a channel after a number of steps: exactly From after 0, exactly To after
// all, and From + (To - From) * step / steps in between, rounded to places decimals, halves up.
//
// Rounding cannot set all weights of a route to 0. At each end some weight is at least one unit in
// its last decimal, and one of the two ends counts for at least half. Fewer decimals are kept only
// for weights so large that they do not round to 0.
func (p *path) at(channel string, step int) selector.Weight {
	switch step {
	case 0:
		return p.from[channel] // 0 for a channel that the ramp adds
	case p.steps:
		return p.to[channel]
	}
	from := p.from[channel].Rat()
	way := new(big.Rat).Sub(p.to[channel].Rat(), from)
	way.Mul(way, big.NewRat(int64(step), int64(p.steps)))
	return selector.RoundHalfUp(way.Add(way, from), p.places)
}

// departure says which weight of the route differs from the ramp's after a number of steps; empty
// when none does.
func (p *path) departure(route *config.Route, step int) string {
	has := make(map[string]selector.Weight, len(route.Weights))
	for _, w := range route.Weights {
		has[w.Channel] = w.Configured
	}
	for _, channel := range slices.Sorted(maps.Keys(p.to)) {
		// A channel that the route does not list has weight 0.
		if want := p.at(channel, step); has[channel] != want {
			return fmt.Sprintf("channel %s has weight %s, not the %s that the ramp left after "+
				"step %d: the weights were set otherwise",
				channel, has[channel], want, step)
		}
	}
	return ""
}

// weights returns the weights of the ramp's channels after a number of steps: in the order of the
// route, then the channels that it does not list yet.
func (p *path) weights(route *config.Route, step int) []config.Weight {
	var out []config.Weight
	listed := make(map[string]bool, len(route.Weights))
	for _, w := range route.Weights {
		listed[w.Channel] = true
		if _, named := p.to[w.Channel]; named {
			out = append(out, weightOf(w.Channel, p.at(w.Channel, step)))
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(p.to)) {
		if !listed[channel] {
			out = append(out, weightOf(channel, p.at(channel, step)))
		}
	}
	return out
}

func weightOf(channel string, w selector.Weight) config.Weight {
	return config.Weight{Channel: channel, Weight: w, Configured: w}
}
