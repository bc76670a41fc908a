package steer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// traffic counts messages for each pair of tenant and calling code.
type traffic map[trafficKey]int64

type trafficKey struct {
	tenant string
	code   int64
}

func (t traffic) add(rows []ledger.Traffic) {
	for _, other := range rows {
		t[trafficKey{other.Tenant, other.CallingCode}] += other.Messages
	}
}

// by sums the messages for each subject of a guard: for each tenant, or for each calling code.
// Messages without a tenant, or without a calling code, are left out.
func (t traffic) by(per config.GuardBy) map[string]int64 {
	out := map[string]int64{}
	for k, n := range t {
		switch {
		case per == config.ByTenant && k.tenant != "":
			out[k.tenant] += n
		case per == config.ByCallingCode && k.code != 0:
			out[strconv.FormatInt(k.code, 10)] += n
		}
	}
	return out
}

// usual is the sum of the traffic in the same hour of earlier, closed days, and how many days those
// are.
type usual struct {
	traffic traffic
	days    int
}

// prefixed is usual with the messages counted by prefix.
type prefixed struct {
	messages map[string]int64
	days     int
}

// Tripped returns the trips of a guard per tenant or calling code, see tripsOf.
func Tripped(g *config.Guard, hour time.Time, seen traffic, before usual) []ledger.Trip {
	return tripsOf(g, hour, seen.by(g.Per), before.traffic.by(g.Per), before.days)
}

// tripsOf returns the trips of a guard from the messages by subject, ordered by subject: one for
// each subject with at least g.AtLeast messages in the hour, and with more than g.Times its mean of
// the days before. With no day to compare with, nothing trips.
func tripsOf(
	g *config.Guard, hour time.Time, seen, before map[string]int64, days int,
) (out []ledger.Trip) {
	if days == 0 {
		return nil
	}
	for subject, n := range seen {
		mean := float64(before[subject]) / float64(days)
		if n < g.AtLeast || float64(n) <= float64(g.Times)*mean {
			continue
		}
		out = append(out, ledger.Trip{
			Per: string(g.Per), Subject: subject, Action: string(g.Action), Hour: hour, Seen: n,
			Usual: mean, Days: days, Times: g.Times, AtLeast: g.AtLeast,
		})
	}
	slices.SortFunc(out, func(a, b ledger.Trip) int { return cmp.Compare(a.Subject, b.Subject) })
	return out
}

// sameTrip reports whether two trips have the same subject, hour and action.
func sameTrip(a, b *ledger.Trip) bool {
	return a.Per == b.Per && a.Subject == b.Subject && a.Action == b.Action && a.Hour.Equal(b.Hour)
}

// withPause adds the subject of a trip to the pauses. It returns false when the subject is paused
// already.
func withPause(p config.Paused, t *ledger.Trip) (config.Paused, bool) {
	p.Lanes, p.Routes = slices.Clone(p.Lanes), slices.Clone(p.Routes)
	p.Tenants, p.Prefixes = slices.Clone(p.Tenants), slices.Clone(p.Prefixes)
	list, name := &p.Tenants, t.Subject
	switch config.GuardBy(t.Per) {
	case config.ByTenant:
	case config.ByCallingCode:
		list, name = &p.Prefixes, "+"+t.Subject
	case config.ByPrefix:
		list = &p.Prefixes
	}
	if p.All || slices.Contains(*list, name) {
		return p, false
	}
	*list = append(*list, name)
	return p, true
}

// tripWords is the reason of the pause, with the figures of the trip.
func tripWords(t *ledger.Trip, zone *time.Location) string {
	subject := strings.ReplaceAll(t.Per, "_", " ") + " " + t.Subject
	return fmt.Sprintf("%s: %d messages since %s, usual are %.1f in that hour (%d days); the guard "+
		"trips above %d times that and from %d on", subject, t.Seen, t.Hour.In(zone).Format("15:04"),
		t.Usual, t.Days, t.Times, t.AtLeast)
}
