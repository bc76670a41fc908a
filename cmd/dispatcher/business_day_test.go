package main

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestAPastDayIsCutInTheZoneThatItEndedIn: the zone is London until version 2. Version 3 is an
// effect of health weighting on version 2. Version 4 changes the zone to Tokyo at 16:00 UTC on 20
// November, when that day is already over in Tokyo.
func TestAPastDayIsCutInTheZoneThatItEndedIn(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, env := openSeeded(t, url), []string{"DISPATCHER_POSTGRES_URL=" + url}
	healthy := strings.Replace(testRouting, "c: 60}}", "c: 60}, health: {errors: 5}}", 1)
	apply := func(document string) result {
		return dispatcher(t, "", env,
			withReason("as agreed", "routing", "apply", write(t, "next.yaml", document))...)
	}
	if got := apply(healthy); got.code != exitOK || strings.Contains(got.out, "business day") {
		t.Fatalf("got %+v, want exit code %d and no %q in the output", got, exitOK, "business day")
	}
	_, err := l.Routing.ApplyEffects(t.Context(),
		ledger.NewEffects{
			Expect: 2, Author: "health", Overrides: []byte(`{"weights":{"default":{"c":"45"}}}`),
		})
	if err != nil {
		t.Fatal(err)
	}
	got := apply(strings.Replace(healthy, "Europe/London", "Asia/Tokyo", 1))
	text := strings.Join(strings.Fields(got.out), " ")
	if got.code != exitOK ||
		!strings.Contains(text,
			"The business day is cut in Asia/Tokyo from now on, no longer in Europe/London: "+
				"limits per day begin with what was claimed since the latest midnight there,") {
		t.Fatalf("got %+v", got)
	}
	appliedAt(t, url, "2026-11-01T00:00Z", "2026-11-10T00:00Z", "2026-11-20T20:00Z",
		"2026-11-20T16:00Z")
	for day, want := range map[string]string{
		"2026-10-01": "Europe/London", "2026-11-05": "Europe/London", "2026-11-19": "Europe/London",
		"2026-11-20": "Europe/London", "2026-11-21": "Asia/Tokyo", "": "Asia/Tokyo",
	} {
		open := &database{Ledger: l, settings: &config.Settings{}}
		noon, zone, err := businessDay(t.Context(), open, day, time.Now())
		if err != nil || zone.String() != want ||
			day != "" && noon.In(zone).Format(time.DateOnly) != day {
			t.Errorf("%s: %v %v %v, want %s", day, noon, zone, err, want)
		}
	}
	appliedAt(t, url, "2026-11-01T00:00Z", "2026-11-10T00:00Z", "2026-11-20T20:00Z",
		"2026-11-20T14:59Z")
	for day, want := range map[string]string{
		"2026-11-19": "Europe/London", "2026-11-20": "Asia/Tokyo",
	} {
		daily := decoded[report.Daily](t,
			dispatcher(t, "", env, "report", "daily", "--day", day, "--format", "json"))
		if daily.Timezone != want || daily.Day != day {
			t.Errorf("%s: %+v, want %s", day, daily, want)
		}
		keyed := append(env,
			"DISPATCHER_DRAW_KEY_FILE="+write(t, "draw.key", strings.Repeat("02", 32)))
		verified := decoded[verification](t,
			dispatcher(t, "", keyed, "audit", "verify", "--day", day, "--format", "json"))
		if verified.Timezone != want || verified.Day != day {
			t.Errorf("%s: %+v, want %s", day, verified, want)
		}
	}
}

// appliedAt sets the times at which the routing versions were applied, starting with the first.
func appliedAt(t *testing.T, url string, times ...string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for i, at := range times {
		_, err := db.Exec(t.Context(),
			`
				update dispatcher.routing_versions set created_at = $2::timestamptz
				where version = $1`,
			i+1, at)
		if err != nil {
			t.Fatal(err)
		}
	}
}
