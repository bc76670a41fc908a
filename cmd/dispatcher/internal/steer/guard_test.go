package steer

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/config"
	"dispatcher/config/tier"
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
	// sums over 4 days
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

// TestPrefixesOfACallingCodeAreCountedApart: Jamaica is not the USA, and Kazakhstan is not Russia.
func TestPrefixesOfACallingCodeAreCountedApart(t *testing.T) {
	t.Parallel()
	a := &Arrivals{}
	a.Add("+12025550100") // before there is a guard
	a.wanted.Store(true)
	for number, n := range map[string]int{
		"+12025550123": 40, "+18765550123": 30, "+14735550123": 5, "+74951234567": 20,
		"+77011234567": 10, "+77021234567": 3, "+2901234": 2, "": 7,
	} {
		for range n {
			a.Add(number)
		}
	}
	taken := a.take()
	for digits, want := range map[int]map[string]int64{
		1: {"+1": 75, "+7": 33, "+2": 2},
		2: {"+12": 40, "+18": 30, "+14": 5, "+74": 20, "+77": 13, "+29": 2},
		4: {"+1202": 40, "+1876": 30, "+1473": 5, "+7495": 20, "+7701": 10, "+7702": 3, "+2901": 2},
	} {
		if diff := cmp.Diff(want, taken.by(digits)); diff != "" {
			t.Errorf("%d digits (-want +got):\n%s", digits, diff)
		}
	}
	if again := a.take(); len(again) > 0 {
		t.Errorf("%v is counted twice", again)
	}
}

// TestAGuardPausesAPrefix: pumping of Jamaica does not hide in the volume of the USA, and pauses no
// more than Jamaica. All processes count together.
func TestAGuardPausesAPrefix(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour) // guards compare the running hour
	r := emptyRig(t)
	r.apply(document + "guards: [{per: prefix, times: 5, at_least: 20}]\n")
	now, err := r.ledger.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, second := r.steerer(), r.steerer()
	arrive := func(s *Steerer, number string, n int) {
		for range n {
			s.cfg.Arrivals.Add(number)
		}
	}
	r.round(first)
	r.round(second)
	arrive(first, "+12025550123", 100)
	arrive(first, "+18765550123", 12)
	arrive(second, "+18765550199", 8)
	recount := func(s *Steerer) {
		s.guarded.idle = time.Time{}
		r.round(s)
	}
	recount(first)
	recount(second)
	if v, _ := r.current(); v.Version != 1 {
		t.Fatal("a guard tripped without a day to compare with")
	}

	hours := sameHours(now.Add(-guardLag), time.UTC, 4)
	for i, hour := range hours { // one day is not known, on another nothing came
		usual := map[string]int64{"+1202": 50, "+1876": 3}
		if i == 1 {
			usual = nil
		}
		if i == 3 {
			break
		}
		if err := r.ledger.Guards.AddPrefixes(t.Context(), hour, 4, usual); err != nil {
			t.Fatal(err)
		}
	}
	first.guarded, second.guarded = guarded{}, guarded{}
	r.round(first)
	r.round(second)
	v, doc := r.current()
	if diff := cmp.Diff(config.Paused{Prefixes: []string{"+1876"}}, doc.Paused); diff != "" {
		t.Fatal(diff)
	}
	if !strings.HasPrefix(v.Reason, "prefix +1876: 20 messages since ") {
		t.Errorf("the reason is %q", v.Reason)
	}
	trips := r.trips()
	if len(trips) != 1 || trips[0].Per != "prefix" || trips[0].Subject != "+1876" ||
		trips[0].Seen != 20 || trips[0].Usual != 2 || trips[0].Days != 3 || trips[0].Version != 2 {
		t.Errorf("got %+v", trips)
	}
	if doc.Paused.Holds("otp", "", "default", "+12025550123") ||
		!doc.Paused.Holds("otp", "", "default", "+18765550123") {
		t.Errorf("got %+v", doc.Paused)
	}
}

// TestOldCountsOfPrefixesAreDeleted: and those that a guard may compare with are kept.
func TestOldCountsOfPrefixesAreDeleted(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour) // guards compare the running hour
	r := emptyRig(t)
	r.apply(document + "guards: [{per: prefix, digits: 2, times: 5, at_least: 20, days: 31}]\n")
	now, err := r.ledger.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := sameHours(now.Add(-guardLag), time.UTC, config.MaxGuardDays)
	for _, hour := range append(kept, now.AddDate(0, 0, -33)) {
		if err := r.ledger.Guards.AddPrefixes(t.Context(), hour, 2, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.round(r.steerer())
	var n int
	if err := r.db.QueryRow(t.Context(),
		`select count(*) from dispatcher.guard_counts`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != len(kept)+1 { // and the running hour
		t.Errorf("%d hours are kept, want %d", n, len(kept)+1)
	}
}

// TestTheSameHourOfEarlierDays: at the same distance from midnight, also where a day has 23 or 25
// hours.
func TestTheSameHourOfEarlierDays(t *testing.T) {
	t.Parallel()
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, hour := range sameHours(time.Date(2026, 3, 30, 9, 40, 0, 0, london), london, 3) {
		got = append(got, hour.In(london).Format("Mon 15:04"))
	}
	if diff := cmp.Diff([]string{"Sun 10:00", "Sat 09:00", "Fri 09:00"}, got); diff != "" {
		t.Error(diff)
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
	tier.OneWindow(t, time.Hour) // guards compare the running hour
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
	tier.OneWindow(t, time.Hour) // guards compare the running hour
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
	tier.OneWindow(t, time.Hour) // guards compare the running hour
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
	tier.OneWindow(t, time.Hour) // guards compare the running hour
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
	tier.OneWindow(t, time.Hour) // guards compare the running hour
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
