package report

import (
	"fmt"
	"time"
)

// TimeShare is the agreed share of a channel over the time of a period: the mean of the agreed
// shares of all versions, weighted by how long each was in force. Verdicts do not use it.
type TimeShare struct {
	Channel string  `json:"channel"`
	Share   float64 `json:"share"`
}

// agreedByTime are the agreed shares of a route by channel, over the time of f.InForce; nil if the
// route did not draw. A time in which it did not draw does not count.
func (f *Figures) agreedByTime(route string) map[string]float64 {
	var total time.Duration
	drew := func(each func(agreed map[string]float64, during time.Duration)) {
		for _, v := range f.InForce {
			if agreed := agreedShares(f.Versions[v.Base].Route(route)); len(agreed) > 0 {
				each(agreed, v.To.Sub(v.From))
			}
		}
	}
	drew(func(_ map[string]float64, during time.Duration) { total += during })
	if total == 0 {
		return nil
	}
	shares := map[string]float64{}
	drew(func(agreed map[string]float64, during time.Duration) {
		for channel, share := range agreed {
			shares[channel] += share * (float64(during) / float64(total))
		}
	})
	return shares
}

// timeShares lists the agreed shares by time of all channels of the route.
func (d *routeDay) timeShares() []TimeShare {
	out := []TimeShare{}
	for _, channel := range d.channels {
		if d.byTime != nil {
			out = append(out, TimeShare{channel, d.byTime[channel]})
		}
	}
	return out
}

// timeSentence says what the agreed shares are by time, where that differs from those by messages.
func (t *traffic) timeSentence(v *RouteVerdict) string {
	var words []string
	for _, s := range v.AgreedByTime {
		if by := t.agreedShare(s.Channel); Percent(by) != Percent(s.Share) {
			words = append(words, fmt.Sprintf("%s %s", s.Channel, Percent(s.Share)))
		}
	}
	if len(words) == 0 || t.traffic.total == 0 {
		return ""
	}
	return "Weighted by the time that each version was in force, the agreed shares are " +
		list(words) + "."
}

// inForceFor writes how long a version was in force.
func inForceFor(seconds int64) string {
	switch d := time.Duration(seconds) * time.Second; {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%d s", seconds)
}
