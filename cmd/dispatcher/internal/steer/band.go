package steer

import (
	"fmt"
	"math"
	"strconv"

	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// leastErrors is how many errors a channel must have before they count as a rate: one
	// of two attempts is not 50 %.
	leastErrors = 3
	// chance is how many standard deviations a share may be off without meaning anything, of a
	// ramp and of what a channel delivers in time. It is judged every few seconds, so it is more
	// than the three that a single look would take.
	chance = 4
)

// outOfBand says which figure of a ramp's route has left the band since the last step or since the
// ramp was resumed; empty when none has, or too little was carried to tell.
//
// Errors are a channel's refused and unanswered attempts among all of its own; fewer than
// leastErrors are never held against it. The deviation is between a channel's share of the accepted
// messages, fallbacks included, and its effective share: what health weighting has moved is no
// deviation. It counts the messages that were planned under the version in force, since others went
// by other weights, and must be larger than the band and than what chance explains.
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
	if r.MaxDeviation > 0 && accepted > 0 && accepted >= r.LeastMessages {
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
		sum += number(w.Weight)
	}
	for _, w := range route.Weights {
		want, has := number(w.Weight)/sum, float64(by[w.Channel])/accepted
		off := math.Abs(has - want)
		if off > r.MaxDeviation && off > chance*math.Sqrt(want*(1-want)/accepted) {
			return fmt.Sprintf("channel %s: carried %s of %.0f messages, its share is %s: "+
				"deviation %s above the band of %s",
				w.Channel, percent(has), accepted, percent(want), percent(off), percent(r.MaxDeviation))
		}
	}
	return ""
}

// percent is a share for people: one decimal, none when it is 0.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}
