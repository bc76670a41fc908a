package report

import (
	"math"

	"dispatcher/config"
	"dispatcher/ledger"
)

// ShareNow compares what a channel carried recently with what was agreed, over all routes that
// draw.
type ShareNow struct {
	// Agreed is its share by the weights of the document, Effective by the effective weights. Routes
	// are weighted by what they carried, or equally if nothing was carried.
	Agreed, Effective float64
	// Carried is its share of the accepted messages, Messages their number over all channels. Carried
	// has no meaning when Messages is 0.
	Carried  float64
	Messages int64
}

// Far reports whether the carried share differs from the agreed one by more than five points, and
// by more than chance explains.
func (s *ShareNow) Far() bool {
	const points, deviations, enough = 0.05, 4, 100
	n := float64(s.Messages)
	apart := math.Abs(s.Carried - s.Agreed)
	return n >= enough && apart > points && apart > deviations*math.Sqrt(s.Agreed*(1-s.Agreed)/n)
}

// SharesNow has an entry for each channel of a route that draws.
func SharesNow(doc *config.Routing, carried []ledger.RecentCarried) map[string]ShareNow {
	byRoute, byChannel, total := map[string]int64{}, map[string]int64{}, int64(0)
	for _, c := range carried {
		if agreedShares(doc.Route(c.Route)) == nil {
			continue
		}
		byRoute[c.Route] += c.Accepted
		byChannel[c.Channel] += c.Accepted
		total += c.Accepted
	}
	out := map[string]ShareNow{}
	var weights float64
	for i := range doc.Routes {
		route := &doc.Routes[i]
		weight := float64(byRoute[route.Name])
		if total == 0 {
			weight = 1
		}
		agreed, effective := agreedShares(route), effectiveShares(route)
		if agreed == nil {
			continue
		}
		weights += weight
		for channel := range agreed {
			s := out[channel]
			s.Agreed += weight * agreed[channel]
			s.Effective += weight * effective[channel]
			out[channel] = s
		}
	}
	for channel, s := range out {
		s.Agreed, s.Effective, s.Messages = s.Agreed/weights, s.Effective/weights, total
		if total > 0 {
			s.Carried = float64(byChannel[channel]) / float64(total)
		}
		out[channel] = s
	}
	return out
}
