package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

// setAhead moves the windows of all limits two days into the future, as if the database's clock had
// been ahead.
func setAhead(t *testing.T, env []string) {
	t.Helper()
	url := strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL=")
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = db.Exec(t.Context(),
		`
			update dispatcher.limits set window_start = window_start + interval '2 days',
			next_at = next_at + interval '2 days' where granted > 0`)
	if err != nil {
		t.Fatal(err)
	}
}

// grantedAhead returns a database in which each limit of channel a has granted one unit in a window
// that begins in the future.
func grantedAhead(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	l, env = limitedBy(t)
	granted(t, l)
	setAhead(t, env)
	return l, env
}

func TestLimitsAndDoctorShowAWindowInTheFuture(t *testing.T) {
	t.Parallel()
	_, env := grantedAhead(t)
	a := decoded[status.Limits](t,
		dispatcher(t, "", env, "limits", "show", "a", "--format", "json")).Channels[0]
	// Of the second nothing is free; of the hour and the day all but what was granted.
	for i, want := range []int64{0, 999, 2_499_999} {
		l := a.Limits[i]
		if !l.Ahead || l.Free.Units/1000 != want/1000 ||
			l.WindowStart.Before(time.Now().Add(24*time.Hour)) {
			t.Errorf("%+v, want %d free", l, want)
		}
	}
	if l := a.Limits[3]; l.Ahead { // of a tenant, granted nothing
		t.Errorf("got %+v, want no Ahead", l)
	}
	day := time.Now().Add(48 * time.Hour).UTC()
	table := strings.Join(strings.Fields(dispatcher(t, "", env, "limits", "show", "a").out), " ")
	for _, want := range []string{
		"Warning: limit a 1s messages: its window begins at ", day.Format("2 Jan 2006 "),
		"later than now: the database's clock was ahead when this window was opened; " +
			"nothing passes before that",
		"dispatcher limits set a --window 1s --restart --reason TEXT",
		"no more than what is left of it passes",
		"dispatcher limits set a --window 1d --unit money --restart",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	found, _ := diagnosis(t, env)
	f := found["limit a 1s messages"]
	if f.Status != statusWarn || !strings.Contains(f.Detail, "the database's clock was ahead") ||
		!strings.Contains(f.Fix, "limits set a --window 1s --restart") {
		t.Errorf("got %+v", f)
	}
}

// TestNothingOfASecondInTheFutureIsShownAsFree: for fixed and sliding windows. The end of the
// window is shown with its date.
func TestNothingOfASecondInTheFutureIsShownAsFree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	for window, want := range map[admission.Window]int64{admission.Second: 0, admission.Hour: 9} {
		l := admission.Limit{Window: window, Max: 10}
		counter := admission.Counter{Limit: l, Max: 10, Granted: 1, Start: now.Add(48 * time.Hour)}
		n := &status.Counters{
			Present: &ledger.Present{
				Now: now,
				Channels: []ledger.ChannelState{
					{Name: "a", Gate: admission.Gate{Counters: []admission.Counter{counter}}},
				},
			},
			Zone: time.UTC,
		}
		shown := n.Limit("a", &l, admission.Ease{})
		if shown.Free.Units != want || !shown.Ahead || !strings.HasPrefix(shown.Ends, "23 Nov ") {
			t.Errorf("%s: got %+v", window, shown)
		}
	}
}

func TestLimitsSetRestartStartsTheWindowOfNow(t *testing.T) {
	t.Parallel()
	_, env := grantedAhead(t)
	args := []string{"limits", "set", "a", "--window", "1h", "--restart", "--format", "json"}
	try := decoded[control.RestartedLimit](t, dispatcher(t, "", env, append(args, "--dry-run")...))
	if try.Restarted || !try.DryRun || try.Was.Granted.Units != 1 || try.Now.Granted != nil ||
		!try.Was.Start.After(time.Now().Add(24*time.Hour)) || try.Now.Start.After(time.Now()) {
		t.Errorf("got %+v", try)
	}
	done := decoded[control.RestartedLimit](t, dispatcher(t, "", env, withReason("the clock", args...)...))
	if !done.Restarted || done.Version != 2 || done.Channel != "a" || done.Was.Granted.Units != 1 ||
		done.Now.Granted.Units != 1 || time.Since(done.Now.Start) > time.Hour+time.Minute {
		t.Errorf("got %+v", done)
	}
	again := dispatcher(t, "", env, withReason("the clock", args...)...)
	if again.code != exitFailed ||
		!strings.Contains(again.err, "limit a 1h messages does not begin in the future") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			again, exitFailed, "limit a 1h messages does not begin in the future")
	}
	money := dispatcher(t, "", env,
		withReason("the clock", "limits", "set", "a", "--window", "1d", "--unit", "money",
			"--restart")...)
	text := strings.Join(strings.Fields(money.out), " ")
	if money.code != exitOK || !strings.Contains(text, "has granted 0.000001 GBP. The one of ") ||
		!strings.Contains(text, "so far it has granted 0.000001 GBP.") {
		t.Errorf("got %+v", money)
	}
	history := dispatcher(t, "", env, "limits", "history", "a", "--format", "json")
	changes := decoded[struct{ Changes []limitMove }](t, history).Changes
	if len(changes) < 3 || changes[0].What != "restart" || changes[0].Unit != "money" ||
		changes[1].Window != "1h" || changes[1].Reason != "the clock" ||
		changes[1].Author != "ann" ||
		!strings.HasSuffix(*changes[1].From, "UTC, 1 granted") ||
		!strings.HasSuffix(*changes[1].To, "UTC, 1 granted") {
		t.Errorf("got %+v", changes)
	}
	one := decoded[struct{ Changes []limitMove }](t,
		dispatcher(t, "", env, "limits", "history", "--limit", "1", "--format", "json")).Changes
	if len(one) != 1 || one[0].What != "restart" {
		t.Errorf("got %+v", one)
	}
	table := dispatcher(t, "", env, "limits", "history", "a", "--window", "1h").out
	if !strings.Contains(table, "restart") || strings.Contains(table, "1d") {
		t.Error(table)
	}
}

func TestLimitsSetRestartRefusesWhatItCannotMean(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"a --window 1s --restart --max 5", "--restart changes nothing else", exitUsage},
		{"a --window 1s --restart --remove", "--restart changes nothing else", exitUsage},
		{"a --window 1m --restart", "there is no limit a 1m messages", exitUsage},
		{"x --window 1m --restart", `there is no channel "x"`, exitUsage},
		{"a --window 1s --restart", "nothing was granted in it yet", exitFailed},
		{
			"a --window 1s --restart --expect-version 1", "the routing was changed after version 1",
			exitFailed,
		},
	} {
		got := dispatcher(t, "", env,
			withReason("why", append([]string{"limits", "set"}, strings.Fields(c.args)...)...)...)
		if got.code != c.code || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: got %+v, want exit code %d and %q in the error", c.args, got, c.code, c.want)
		}
	}
	got := dispatcher(t, "", env, "limits", "set", "a", "--window", "1s", "--restart")
	if got.code != exitUsage || !strings.Contains(got.err, "--reason is missing") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, "--reason is missing")
	}
}

// TestADryRunOfARestartShowsTheSecondOfTheRealOne: that is the next second, not the current one.
func TestADryRunOfARestartShowsTheSecondOfTheRealOne(t *testing.T) {
	t.Parallel()
	_, env := grantedAhead(t)
	args := []string{"limits", "set", "a", "--window", "1s", "--restart", "--dry-run"}
	before := time.Now()
	try := decoded[control.RestartedLimit](t, dispatcher(t, "", env, append(args, "--format", "json")...))
	// The test and the database use the same clock.
	if !try.Now.Start.After(before) || try.Now.Start.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v, asked at %s", try, before)
	}
	text := strings.Join(strings.Fields(dispatcher(t, "", env, args...).out), " ")
	if !strings.Contains(text, "would take its place, with nothing granted in it.") {
		t.Error(text)
	}
	args[4] = "1h"
	text = strings.Join(strings.Fields(dispatcher(t, "", env, args...).out), " ")
	if !strings.Contains(text,
		"would take its place, with what was claimed in it, and later while the clock was ahead.") {
		t.Error(text)
	}
}

func TestWhatARestartedWindowBeginsWithIsToldByTheKindOfLimit(t *testing.T) {
	t.Parallel()
	prefix := admission.Scope{Prefix: "+44"}
	for _, c := range []struct {
		limit admission.Limit
		want  string
	}{
		{admission.Limit{Window: admission.Second}, "with nothing"},
		{admission.Limit{Window: admission.Second, Scope: prefix}, "with nothing"},
		{admission.Limit{Window: admission.Day, Scope: prefix}, "with what was claimed in it"},
		{
			admission.Limit{Window: admission.Day, Scope: admission.Scope{Tenant: "shop"}},
			"with what was claimed in it",
		},
	} {
		if got := beginningWords(&c.limit); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %q at its start", c.limit.Key().On("a"), got, c.want)
		}
	}
}

// TestARestartWithoutARowSaysHowItComesBack: the message is right whether or not the limit's
// history has windows that begin in the future.
func TestARestartWithoutARowSaysHowItComesBack(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]bool{
		"without a history": false, "with a window in the future in its history": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := grantedAhead(t)
			db, err := pgx.Connect(t.Context(),
				strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL="))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close(context.Background()) })
			loseRow(t, db, ahead)
			args := []string{"limits", "set", "a", "--window", "1h", "--restart"}
			for _, all := range [][]string{
				withReason("the clock", args...), append(args, "--dry-run"),
			} {
				got := dispatcher(t, "", env, all...)
				if got.code != exitFailed ||
					!strings.Contains(got.err, "limit a 1h messages is in the document") ||
					!strings.Contains(got.err, `another max with "dispatcher limits set"`) ||
					!strings.Contains(got.err,
						`"dispatcher limits show" then says that its window begins in the future`) {
					t.Errorf("got %+v, want exit code %d, %q in the error, %q in the error and %q in the error",
						got, exitFailed, "limit a 1h messages is in the document",
						`another max with "dispatcher limits set"`,
						`"dispatcher limits show" then says that its window begins in the future`)
				}
			}
			got := dispatcher(t, "", env,
				withReason("the row is gone", "limits", "set", "a", "--window", "1h",
					"--max", "1001")...)
			if got.code != exitOK {
				t.Fatalf("got %+v, want exit code %d", got, exitOK)
			}
			shown := decoded[status.Limits](t,
				dispatcher(t, "", env, "limits", "show", "a",
					"--format", "json")).Channels[0].Limits[1]
			if shown.Ahead != ahead {
				t.Errorf("got %+v, want Ahead %v", shown, ahead)
			}
			if ahead {
				got := dispatcher(t, "", env,
					withReason("the clock", "limits", "set", "a", "--window", "1h", "--restart")...)
				if got.code != exitOK {
					t.Errorf("got %+v, want exit code %d", got, exitOK)
				}
			}
			var started bool
			err = db.QueryRow(t.Context(), `
				select window_start <= now() and window_start > now() - interval '61 minutes'
				from dispatcher.limits where channel = 'a' and window_seconds = 3600
			`).Scan(&started)
			if err != nil || !started {
				t.Errorf("started %t, %v", started, err)
			}
		})
	}
}

// loseRow deletes the row of channel a's hourly limit. With ahead, the limit's history has another
// window, which begins in the future.
func loseRow(t *testing.T, db *pgx.Conn, ahead bool) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		with gone as (delete from dispatcher.limits where channel = 'a' and window_seconds = 3600
		returning *)
		insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
		max, granted, reserved, currency, since)
		select channel, scope, window_seconds, unit, window_start - interval '1 hour', max, max, 0,
		currency, since from gone where $1`, ahead)
	if err != nil {
		t.Fatal(err)
	}
}
