package steer

import (
	"context"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// carriedWithin is the period over which carried shares are counted, as in "dispatcher status".
	carriedWithin = 5 * time.Minute
	// carriedEvery is the time between two counts, which cost the database a third of a second at
	// most.
	carriedEvery = time.Minute
	// leastCarried is the fewest messages of a route for which shares are shown: with fewer, chance
	// decides.
	leastCarried = 100
)

// countCarried sets the gauges of the carried shares, once every carriedEvery.
func (s *Steerer) countCarried(ctx context.Context, now time.Time) error {
	if now.Sub(s.countedAt).Abs() < carriedEvery { // the clock may have been set back
		return nil
	}
	s.countedAt = now
	all, err := s.cfg.Ledger.Reports.CarriedLately(ctx, carriedWithin, s.seen.Base)
	s.metrics.carriedShares(s.seen.doc, all) // after an error none, instead of old ones
	return err
}

// carriedShares sets the gauges to what the channels of each route with weights carried. A route
// with too few messages loses its gauges.
func (m *metrics) carriedShares(doc *config.Routing, all []ledger.RecentCarried) {
	m.carried.Reset()
	type pair struct{ route, channel string }
	each, of := map[pair]int64{}, map[string]int64{}
	for _, c := range all {
		each[pair{c.Route, c.Channel}] += c.Accepted
		of[c.Route] += c.Accepted
	}
	for i := range doc.Routes {
		route := &doc.Routes[i]
		total := of[route.Name]
		if total < leastCarried {
			continue
		}
		for _, w := range route.Weights {
			m.carried.WithLabelValues(route.Name, w.Channel).Set(
				float64(each[pair{route.Name, w.Channel}]) / float64(total))
		}
	}
}
