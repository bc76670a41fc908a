package steer

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
)

const guardedDocument = document + `guards:
  - {per: calling_code, times: 5, at_least: 20}
  - {per: tenant, times: 3, at_least: 10, days: 2, action: warn}
`

// TestAGuardTripsOnFarMoreThanUsual: not on small numbers, nor on traffic that it cannot name.
func TestAGuardTripsOnFarMoreThanUsual(t *testing.T) {
	t.Parallel()
	guard := &config.Guard{
		Per: config.ByCallingCode, Times: 5, AtLeast: 200, Action: config.GuardPauses,
	}
	// in all of 4 days
	before := traffic{{"shop", 44}: 300, {"bank", 44}: 100, {"shop", 33}: 4}
	for name, c := range map[string]struct {
		seen traffic
		days int
		want string
	}{
		"as usual":                   {traffic{{"shop", 44}: 120}, 4, ""},
		"five times the usual":       {traffic{{"shop", 44}: 300, {"new", 44}: 200}, 4, ""},
		"one more":                   {traffic{{"shop", 44}: 300, {"new", 44}: 201}, 4, "44"},
		"few, though unusual":        {traffic{{"shop", 33}: 199}, 4, ""},
		"many, and unusual":          {traffic{{"shop", 33}: 200}, 4, "33"},
		"never before":               {traffic{{"shop", 263}: 200, {"shop", 7}: 900}, 4, "263 7"},
		"no day is closed yet":       {traffic{{"shop", 263}: 1000}, 0, ""},
		"numbers of no calling code": {traffic{{"shop", 0}: 1000}, 4, ""},
	} {
		var got []string
		for _, trip := range Tripped(guard, time.Time{}, c.seen, usual{before, c.days}) {
			got = append(got, trip.Subject)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	guard.Per = config.ByTenant
	got := Tripped(guard, time.Time{}, traffic{{"bank", 44}: 100, {"bank", 33}: 101, {"", 44}: 900},
		usual{before, 4})
	if len(got) != 1 || got[0].Subject != "bank" || got[0].Seen != 201 || got[0].Usual != 25 {
		t.Errorf("got %+v", got)
	}
}

// addUsualTraffic closes the last days, each with this many messages in the current hour of the
// day.
func (r *rig) addUsualTraffic(days int, tenant string, code, messages int) {
	r.t.Helper()
	r.exec(`
		with d as (select (now() at time zone 'UTC')::date - n as day,
		    date_trunc('hour', now() at time zone 'UTC' - interval '15 s')
		      - ((now() at time zone 'UTC' - interval '15 s')::date)::timestamp as hour
		  from generate_series(1, $1::int) n),
		c as (insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
		  select day, 1, 'UTC', day::timestamp at time zone 'UTC',
		    (day + 1)::timestamp at time zone 'UTC', 1 from d on conflict do nothing)
		insert into dispatcher.choice_figures (day, revision, hour, routing_version, route, channel,
		  tenant, calling_code, messages, rejected, failed, unknown, open, segments)
		select day, 1, day::timestamp at time zone 'UTC' + hour, 1, 'default', 'a', $2, $3, $4, 0, 0, 0,
		  0, 0 from d`, days, tenant, code, messages)
}

// addTraffic stores messages in the counted part of the current hour.
func (r *rig) addTraffic(tenant string, code, n int) {
	r.t.Helper()
	r.carry("a", provider.Accepted, n)
	r.exec(`update dispatcher.messages set tenant = $1, calling_code = $2, received_at = greatest(
		date_trunc('hour', now() - interval '15 s'), now() - interval '20 s')
		where calling_code is null`, tenant, code)
}

// TestAGuardPausesOnceAnHour: so that a resume by an operator holds. A guard that only warns pauses
// nothing.
func TestAGuardPausesOnceAnHour(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(guardedDocument)
	r.addUsualTraffic(4, "shop", 44, 10)
	s, registry := r.steerer(), prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	r.addTraffic("shop", 44, 29)
	r.addTraffic("shop", 263, 19)
	r.round(s)
	trips := r.trips()
	if len(trips) != 1 || trips[0].Per != "tenant" || trips[0].Subject != "shop" ||
		trips[0].Seen != 48 || trips[0].Usual != 10 || trips[0].Days != 2 || trips[0].Version != 0 {
		t.Fatalf("got %+v", trips)
	}
	if v, _ := r.current(); v.Version != 1 {
		t.Fatalf("a warning made version %d", v.Version)
	}

	r.addTraffic("news", 263, 2) // 21 to a country without usual traffic
	s.guarded = guarded{}
	r.round(s)
	v, doc := r.current()
	if diff := cmp.Diff(config.Paused{Prefixes: []string{"+263"}}, doc.Paused); diff != "" {
		t.Fatal(diff)
	}
	if v.Author != guardAuthor || !strings.HasPrefix(v.Reason, "calling code 263: 21 messages since ") ||
		!strings.HasPrefix(v.Document, strings.TrimSuffix(guardedDocument, "\n")) {
		t.Errorf("got %+v", v)
	}
	if trips = r.trips(); len(trips) != 2 || trips[0].Version != v.Version {
		t.Fatalf("got %+v", trips)
	}
	r.logged("warn", "guard: calling code 263: 21 messages since")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if strings.HasSuffix(f.GetName(), "guard_trips_total") {
				counted += metric.GetCounter().GetValue()
			}
		}
	}
	if counted != 2 {
		t.Errorf("%v trips are counted", counted)
	}

	r.apply(guardedDocument) // an operator resumes
	r.addTraffic("news", 263, 50)
	s.guarded = guarded{}
	r.round(s)
	r.round(r.steerer()) // nor after a restart
	if v, doc := r.current(); v.Version != 3 || doc.Paused.Any() {
		t.Errorf("version %d: %+v", v.Version, doc.Paused)
	}

	// the next hour
	r.exec(`update dispatcher.guard_trips set hour = hour - interval '1 hour'`)
	s.guarded = guarded{}
	r.round(s)
	if _, doc := r.current(); !doc.Paused.Holds("otp", "", "default", "+263771234567") {
		t.Errorf("got %+v", doc.Paused)
	}
}

// TestTrafficIsCountedPieceByPiece: each message with a first choice counts once, and each hour is
// counted anew.
func TestTrafficIsCountedPieceByPiece(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(guardedDocument)
	r.addTraffic("shop", 263, 9)
	r.exec(`update dispatcher.messages set first_choice = null
		where seq in (select seq from dispatcher.messages limit 4)`)
	s := r.steerer()
	if err := s.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := r.ledger.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hour := now.Add(-guardLag).Truncate(time.Hour)
	early := hour.Add(guardLag) // nothing of the hour is old enough
	for _, c := range []struct {
		at   time.Time
		want int64
	}{{early, 0}, {now, 5}, {now, 5}, {now.Add(time.Second), 5}, {now.Add(time.Hour), 0}} {
		if err := s.count(t.Context(), c.at); err != nil {
			t.Fatal(err)
		}
		if got := s.guarded.seen[trafficKey{"shop", 263}]; got != c.want {
			t.Errorf("at %s: %d", c.at, got)
		}
	}
}

// TestInstancesTogetherTripOnce: of many that check at the same time one pauses and records.
func TestInstancesTogetherTripOnce(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(guardedDocument)
	r.addUsualTraffic(4, "shop", 44, 10)
	r.addTraffic("shop", 263, 40)
	var wait sync.WaitGroup
	for range 4 {
		s := r.steerer()
		wait.Go(func() {
			for range 3 {
				r.round(s)
				s.guarded.idle = time.Time{}
			}
		})
	}
	wait.Wait()
	if v, _ := r.current(); v.Version != 2 {
		t.Errorf("version %d is current", v.Version)
	}
	if trips := r.trips(); len(trips) != 2 {
		t.Errorf("got %+v, want %d of them", trips, 2)
	}
}

// TestAnUnfinishedTripIsFinished: the next process records what is paused.
func TestAnUnfinishedTripIsFinished(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(guardedDocument)
	r.addUsualTraffic(4, "shop", 44, 10)
	r.addTraffic("shop", 263, 40)
	r.round(r.steerer())
	r.exec(`delete from dispatcher.guard_trips`)
	r.round(r.steerer())
	if v, _ := r.current(); v.Version != 2 {
		t.Errorf("version %d is current", v.Version)
	}
	if trips := r.trips(); len(trips) != 2 || trips[0].Version+trips[1].Version != 2 {
		t.Errorf("got %+v", trips)
	}
}

// TestASubjectThatCannotBePausedHoldsUpNoOther: a document cannot name a blank tenant.
func TestASubjectThatCannotBePausedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(document + "guards: [{per: tenant, times: 3, at_least: 10}]\n")
	r.addUsualTraffic(1, "shop", 44, 1)
	r.addTraffic(" ", 44, 20)
	r.addTraffic("shop", 44, 20)
	err := r.steerer().round(t.Context())
	if err == nil || !strings.Contains(err.Error(), "guard of tenant  : ") {
		t.Errorf("got error %v", err)
	}
	_, doc := r.current()
	if diff := cmp.Diff(config.Paused{Tenants: []string{"shop"}}, doc.Paused); diff != "" {
		t.Error(diff)
	}
}

func (r *rig) trips() []ledger.Trip {
	r.t.Helper()
	trips, err := r.ledger.Guards.Trips(r.t.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		r.t.Fatal(err)
	}
	return trips
}
