package report

import (
	"math"

	"dispatcher/config"
)

// RouteVerdict answers two questions about a route's day: were the draws fair, and did the channels
// carry what was agreed?
type RouteVerdict struct {
	Route string `json:"route"`
	// DrawsVerdict is about the messages received on the day: Fair, Unfair, OneWay, Sticky,
	// TooFew or NoWeight.
	DrawsVerdict string `json:"draws_verdict"`
	// PValue is the p-value of the draws, nil when nothing was tested. DegreesOfFreedom are those of
	// the test, summed over the versions.
	PValue           *float64 `json:"p_value"`
	DegreesOfFreedom int      `json:"degrees_of_freedom"`
	// TrafficVerdict is about the messages carried on the day: Kept, Moved, TooFew or NoWeight.
	TrafficVerdict string `json:"traffic_verdict"`
	// Tolerance is how far a carried share may be from the agreed one, from 0 to 1; the mean over the
	// versions of the carried messages.
	Tolerance float64 `json:"tolerance"`
	// Carried counts the messages that the channels carried.
	Carried int64 `json:"carried"`
	// Versions are the versions of the agreed shares, with the messages counted under each.
	Versions []VersionShare `json:"versions"`
	// AgreedByTime are the agreed shares weighted by time in place of messages.
	AgreedByTime []TimeShare `json:"agreed_by_time"`
	// Waterfall leads from the agreed to the carried messages of each channel; empty when nothing
	// was drawn.
	Waterfall []Waterfall `json:"waterfall"`
	// Text is the verdict in sentences, with the causes.
	Text []string `json:"text"`
}

// Found reports whether the route has a finding: shares that were moved, or unfair draws.
func (v *RouteVerdict) Found() bool {
	return v.TrafficVerdict == Moved || v.DrawsVerdict == Unfair
}

// verdict makes the verdict of the route.
func (d *routeDay) verdict() RouteVerdict {
	v := RouteVerdict{Route: d.name, Tolerance: d.tolerance(), Carried: d.carries}
	var fit Fit
	fit, v.DrawsVerdict = d.drawsVerdict()
	if fit.Tested() {
		v.PValue, v.DegreesOfFreedom = &fit.P, fit.Freedom
	}
	t := traffic{routeDay: d, tolerance: v.Tolerance}
	if t.fit = FitOf(d.traffic.samples(d.channels, agreedOf)...); d.traffic.sticky() {
		t.fit = Fit{Verdict: Sticky}
	}
	v.TrafficVerdict = t.verdict(v.DrawsVerdict)
	v.Versions, v.Waterfall = d.versionShares(), d.waterfall()
	v.AgreedByTime = d.timeShares()
	v.Text = t.text(&v)
	return v
}

// drawsVerdict tests the draws of each version against its effective weights.
func (d *routeDay) drawsVerdict() (Fit, string) {
	switch {
	case d.drawn.sticky():
		return Fit{}, Sticky
	case d.drawn.total > 0:
		fit := FitOf(d.drawn.samples(d.channels, effectiveOf)...)
		return fit, fit.Verdict
	case d.noWeight():
		return Fit{}, NoWeight
	}
	return Fit{}, TooFew
}

// noWeight reports whether no message of the day had an agreed share.
func (d *routeDay) noWeight() bool {
	switch {
	case d.drawn.total > 0 || d.traffic.total > 0:
		return false
	case d.total > 0 || d.carries > 0:
		return true
	}
	return d.route != nil && !d.route.Draws()
}

// tolerance is the mean over the versions of the carried messages, as the agreed shares are. When
// nothing was carried, it is that of the newest version.
func (d *routeDay) tolerance() float64 {
	if d.traffic.total > 0 {
		return d.traffic.tolerance / float64(d.traffic.total)
	}
	if route := d.latestDoc.Route(d.name); route != nil {
		return toleranceOf(route)
	}
	return toleranceOf(d.route)
}

// toleranceOf is the tolerance of a route, from 0 to 1; the default for nil.
func toleranceOf(route *config.Route) float64 {
	if route == nil {
		return config.DefaultTolerance.Share()
	}
	return route.Tolerance.Share()
}

// traffic compares the carried messages with the agreed shares.
type traffic struct {
	*routeDay
	tolerance float64
	// fit tests what was carried, by version, against the agreed shares.
	fit Fit
}

// verdict is the verdict of the traffic. It is independent of that of the draws: unfair draws of
// two versions can cancel in what was carried, and fair draws can be moved by fallbacks.
//
// A share beyond the tolerance is not a finding if chance explains it: with few messages, fair
// draws alone differ by more. Even then it is a finding if more messages than the tolerance went to
// another channel than drawn, because that is not chance. On a route that draws by recipient, only
// such moves are a finding: one recipient with many messages changes the shares, and no test covers
// that.
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
	case t.fit.Verdict == TooFew && !t.traffic.someSticky(): // else what fallbacks moved counts
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

// off returns the channels whose carried share differs from the agreed one by more than the
// tolerance. It also returns those that carried less than half of the agreed share, if chance does
// not explain that: a channel with an agreed share of 2 % that carries nothing is within a
// tolerance of two points.
func (t *traffic) off() (channels []string) {
	for _, channel := range t.channels {
		missing := t.fit.Verdict == Unfair && t.share(channel) < t.agreedShare(channel)/2
		if missing || math.Abs(t.deviation(channel)) > t.tolerance+roundingError {
			channels = append(channels, channel)
		}
	}
	return channels
}

// nobodyCarried reports whether enough messages were drawn for a verdict, but too few carried to
// compare shares, because most of them were rejected, failed or had no answer.
func (t *traffic) nobodyCarried(draws string) bool {
	switch draws {
	case Fair, Unfair:
		if t.traffic.total > 0 && t.fit.Verdict != TooFew {
			return false
		}
	case Sticky:
		if t.drawn.total < leastExpected*int64(len(t.channels)) {
			return false
		}
	case OneWay:
		if t.drawn.total < leastExpected || t.traffic.total >= leastExpected {
			return false
		}
	default:
		return false
	}
	lost := int64(0)
	for _, ended := range t.lost() {
		lost += ended.Messages
	}
	return 2*lost > t.drawn.total
}

// lost returns the ended messages that no channel carried, by cause.
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

// roundingError is larger than the rounding errors of shares.
const roundingError = 1e-9

// deviation is the carried share of a channel minus the agreed one.
func (t *traffic) deviation(channel string) float64 {
	return t.share(channel) - t.agreedShare(channel)
}

func (t *traffic) share(channel string) float64 {
	return float64(t.traffic.counts[channel]) / float64(max(t.traffic.total, 1))
}

func (t *traffic) agreedShare(channel string) float64 {
	return t.traffic.agreed[channel] / float64(max(t.traffic.total, 1))
}

// net is how many more messages a channel carried than were drawn for it, plus what health
// weighting added to its draws, as a share of all carried messages. It is negative for a loss.
func (t *traffic) net(channel string) float64 {
	moved := float64(t.traffic.counts[channel] - t.firsts.counts[channel])
	moved += t.traffic.effective[channel] - t.traffic.agreed[channel]
	return moved / float64(max(t.traffic.total, 1))
}
