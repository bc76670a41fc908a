package report

import (
	"math"

	"dispatcher/config"
)

// RouteVerdict answers two questions about the day of a route: were the draws fair, and did the
// channels carry what was agreed?
type RouteVerdict struct {
	Route string `json:"route"`
	// DrawsVerdict is about the messages received on the day: Fair, Unfair, OneWay, TooFew or
	// NoWeight.
	DrawsVerdict string `json:"draws_verdict"`
	// PValue is that of the draws, nil when nothing was tested; DegreesOfFreedom those of the test,
	// summed over the versions.
	PValue           *float64 `json:"p_value"`
	DegreesOfFreedom int      `json:"degrees_of_freedom"`
	// TrafficVerdict is about the messages carried on the day: Kept, Moved, TooFew or NoWeight.
	TrafficVerdict string `json:"traffic_verdict"`
	// Tolerance is how far a carried share may be from the agreed one, between 0 and 1.
	Tolerance float64 `json:"tolerance"`
	// Carried are the messages that the channels carried.
	Carried int64 `json:"carried"`
	// Versions are those that the agreed shares come from, with the messages that count under each.
	Versions []VersionShare `json:"versions"`
	// Waterfall leads from what was agreed to what was carried, channel by channel; empty where
	// nothing was drawn.
	Waterfall []Waterfall `json:"waterfall"`
	// Text says it in sentences: what was carried instead of what, and why.
	Text []string `json:"text"`
}

// Found reports whether the route's day is one that somebody should look at.
func (v *RouteVerdict) Found() bool {
	return v.TrafficVerdict == Moved || v.DrawsVerdict == Unfair
}

// verdict judges the route.
func (d *routeDay) verdict() RouteVerdict {
	v := RouteVerdict{Route: d.name, Tolerance: d.tolerance(), Carried: d.carries}
	var fit Fit
	fit, v.DrawsVerdict = d.drawsVerdict()
	if fit.Tested() {
		v.PValue, v.DegreesOfFreedom = &fit.P, fit.Freedom
	}
	t := traffic{routeDay: d, tolerance: v.Tolerance}
	t.fit = FitOf(d.traffic.samples(d.channels, agreedOf)...)
	v.TrafficVerdict = t.verdict(v.DrawsVerdict)
	v.Versions, v.Waterfall = d.versionShares(), d.waterfall()
	v.Text = t.text(&v)
	return v
}

// drawsVerdict tests the draws of each version against the weights that they went by.
func (d *routeDay) drawsVerdict() (Fit, string) {
	switch {
	case d.drawn.total > 0:
		fit := FitOf(d.drawn.samples(d.channels, effectiveOf)...)
		return fit, fit.Verdict
	case d.noWeight():
		return Fit{}, NoWeight
	}
	return Fit{}, TooFew
}

// noWeight reports whether no share was agreed for anything that happened on the day.
func (d *routeDay) noWeight() bool {
	switch {
	case d.drawn.total > 0 || d.traffic.total > 0:
		return false
	case d.total > 0 || d.carries > 0:
		return true
	}
	return d.route != nil && d.route.Mode != modeWeighted
}

// tolerance is that of the newest version of the day.
func (d *routeDay) tolerance() float64 {
	route := routeNamed(d.latestDoc, d.name)
	if route == nil {
		route = d.route
	}
	if route == nil {
		return config.DefaultTolerance.Share()
	}
	return route.Tolerance.Share()
}

// traffic compares what was carried with what was agreed.
type traffic struct {
	*routeDay
	tolerance float64
	// fit tests what was carried, by version, against the agreed shares.
	fit Fit
}

// verdict is that of the traffic. It says nothing about the draws: what was carried can be as
// agreed while they were not fair, because faults of two versions cancel, and the other way round.
//
// A share beyond the tolerance is no finding where chance explains it: with few messages draws
// alone are farther apart than that. It is one where messages were moved by more than the
// tolerance, which is no chance.
func (t *traffic) verdict(draws string) string {
	switch {
	case t.noWeight():
		return NoWeight
	case t.nobodyCarried(draws):
		return Moved
	case t.traffic.total == 0:
		return TooFew
	case len(t.off()) == 0:
		return Kept
	case t.fit.Verdict == TooFew:
		return TooFew
	case t.fit.Verdict == Unfair:
		return Moved
	}
	for _, channel := range t.off() {
		if math.Abs(t.net(channel)) > t.tolerance {
			return Moved
		}
	}
	return Kept
}

// off are the channels whose carried share is farther from the agreed one than the tolerance, or,
// if chance does not explain it, less than half of it: a channel agreed at 2 % that carries nothing
// is within a tolerance of two points.
func (t *traffic) off() (channels []string) {
	for _, channel := range t.channels {
		missing := t.fit.Verdict == Unfair && t.share(channel) < t.agreedShare(channel)/2
		if missing || math.Abs(t.deviation(channel)) > t.tolerance+roundingError {
			channels = append(channels, channel)
		}
	}
	return channels
}

// nobodyCarried reports whether enough messages were drawn to judge, and so few of them were
// carried by anybody that nothing can be said of shares: most of them were rejected, failed or had
// no answer.
func (t *traffic) nobodyCarried(draws string) bool {
	if draws != Fair && draws != Unfair || t.traffic.total > 0 && t.fit.Verdict != TooFew {
		return false
	}
	lost := int64(0)
	for _, ended := range t.lost() {
		lost += ended.Messages
	}
	return 2*lost > t.drawn.total
}

// lost are the messages that nobody carried, by cause, without those that are not over with yet.
func (t *traffic) lost() (ended []Move) {
	for _, word := range endCauses {
		sum := Move{Cause: word}
		for _, moves := range t.moves {
			for _, m := range moves {
				if m.Cause == word {
					sum.Messages += m.Messages
				}
			}
		}
		if sum.Messages > 0 {
			ended = append(ended, sum)
		}
	}
	return ended
}

// roundingError is more than what shares are off because they are floating-point numbers.
const roundingError = 1e-9

// deviation is the carried share of a channel less the agreed one.
func (t *traffic) deviation(channel string) float64 {
	return t.share(channel) - t.agreedShare(channel)
}

func (t *traffic) share(channel string) float64 {
	return float64(t.traffic.counts[channel]) / float64(max(t.traffic.total, 1))
}

func (t *traffic) agreedShare(channel string) float64 {
	return t.traffic.agreed[channel] / float64(max(t.traffic.total, 1))
}

// net is what a channel carried more than its own first choices, as a share.
func (t *traffic) net(channel string) float64 {
	more := t.traffic.counts[channel] - t.firsts.counts[channel]
	return float64(more) / float64(max(t.traffic.total, 1))
}
