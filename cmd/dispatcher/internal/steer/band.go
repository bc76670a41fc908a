package steer

import (
	"fmt"
	"math"
	"strconv"

	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// leastErrors is how many errors a channel must have before its error rate is computed. With
	// fewer, the rate says little: one error in two attempts is not yet 50 %.
	leastErrors = 3
	// chance is how many standard deviations a measured share may differ from the expected one and
	// still count as chance. It applies to the deviation of a ramp and to the part that a channel
	// delivers in time. Three is usual for a single check; these are repeated every few seconds.
	chance = 4
)

// outOfBand says which figure of a ramp's route has left the band since the last step or since the
// ramp was resumed. It is empty when none has, or when there were fewer than r.LeastMessages.
//
// The error rate of a channel is its refused and unanswered attempts, divided by all its attempts.
// A channel with fewer than leastErrors errors passes.
//
// The deviation of a channel is the difference between its share of the accepted messages,
// fallbacks included, and its effective share. The effective share is used so that a move of health
// weighting is not a deviation. Only messages planned under the version in force count, because
// others were drawn by other weights. A deviation must exceed both the band and what chance
// explains.
func outOfBand(r *ledger.Ramp, route *config.Route, carried []ledger.Carried) string {
	var attempts, accepted int64
	for _, c := range carried {
		attempts += c.Attempts
		accepted += c.InForce
	}
	if r.MaxErrors > 0 && attempts > 0 && attempts >= r.LeastMessages {
		for _, c := range carried {
			if why := tooManyErrors(c, r.MaxErrors); why != "" {
				return why
			}
		}
	}
	// On a sticky route numbers are drawn and not messages: one number may have most of them.
	if r.MaxDeviation > 0 && !route.Sticky && accepted > 0 && accepted >= r.LeastMessages {
		return tooFarOff(r, route, carried, float64(accepted))
	}
	return ""
}

func tooManyErrors(c ledger.Carried, most float64) string {
	if c.Errors < leastErrors || c.Attempts == 0 {
		return ""
	}
	if rate := float64(c.Errors) / float64(c.Attempts); rate > most {
		return fmt.Sprintf("channel %s: errors %s above the band of %s: %d of %d attempts",
			c.Channel, percent(rate), percent(most), c.Errors, c.Attempts)
	}
	return ""
}

func tooFarOff(
	r *ledger.Ramp, route *config.Route, carried []ledger.Carried, accepted float64,
) string {
	by := make(map[string]int64, len(carried))
	for _, c := range carried {
		by[c.Channel] += c.InForce
	}
	var sum float64
	for _, w := range route.Weights {
		sum += w.Weight.Float()
	}
	for _, w := range route.Weights {
		want, has := w.Weight.Float()/sum, float64(by[w.Channel])/accepted
		off := math.Abs(has - want)
		if off > r.MaxDeviation && off > chance*math.Sqrt(want*(1-want)/accepted) {
			return fmt.Sprintf("channel %s: carried %s of %.0f messages, its share is %s: "+
				"deviation %s above the band of %s",
				w.Channel, percent(has), accepted, percent(want), percent(off), percent(r.MaxDeviation))
		}
	}
	return ""
}

// percent writes a share from 0 to 1 as a percentage, with one decimal unless that is 0.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}
