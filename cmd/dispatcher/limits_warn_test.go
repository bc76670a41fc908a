package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestEveryWayToChangeALimitWarnsOfTheSame: apply and set, and the dry run of each.
func TestEveryWayToChangeALimitWarnsOfTheSame(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	granted(t, l)
	shut := write(t, "shut.yaml",
		strings.Replace(limitedRouting, "{window: 1h, max: 1000,", "{window: 1h, max: 0,", 1))
	warnings := func(args ...string) []string {
		t.Helper()
		got := dispatcher(t, "", env, withReason("closed", append(args, "--format", "json")...)...)
		if got.code != exitOK {
			t.Fatalf("%v: got %+v, want exit code %d", args, got, exitOK)
		}
		return decoded[control.Changed](t, got).Warnings
	}
	const set, apply = "limits set a --window 1h --max 0", "routing apply"
	for _, args := range [][]string{
		append(strings.Fields(set), "--dry-run"), append(strings.Fields(apply), shut, "--dry-run"),
		append(strings.Fields(apply), shut),
	} {
		got := warnings(args...)
		if len(got) != 1 ||
			!strings.HasPrefix(got[0],
				"The running window of a 1h messages has granted 1 messages already: it takes no "+
					"more before it ends (") {
			t.Errorf("%v: got %q", args, got)
		}
	}
	all := strings.NewReplacer("b: {provider: sandbox,",
		"b: {provider: sandbox, limits: [{window: 1m, max: 0}],",
		"c: {provider: sandbox,", "c: {provider: sandbox, limits: [{window: 1d, "+
			"max: 0}],").Replace(strings.Replace(limitedRouting,
		"{window: 1h, max: 1000,", "{window: 1h, max: 0,", 1))
	const idle = "Route default has no channel left that takes messages: they wait until one does."
	got := warnings("routing", "apply", write(t, "all.yaml", all), "--dry-run")
	if !slices.Contains(got, idle) {
		t.Errorf("got %q", got)
	}
	if got := warnings("routing", "apply", write(t, "all.yaml", all)); !slices.Contains(got, idle) {
		t.Errorf("got %q", got)
	}
	got = warnings("limits", "set", "a", "--window", "1s", "--max", "70")
	if slices.Contains(got, idle) {
		t.Errorf("%q: warned of something that did not change", got)
	}
}

// onApply is a tracer that calls its function just before a version is written.
type onApply func()

func (f onApply) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData,
) context.Context {
	if strings.Contains(q.SQL, "pg_advisory_xact_lock") {
		f()
	}
	return ctx
}

func (onApply) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestWhatARunningWindowHasGrantedIsReadWhenTheChangeIsInForce: until then the window grants more.
func TestWhatARunningWindowHasGrantedIsReadWhenTheChangeIsInForce(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	url := strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL=")
	slow, err := ledger.Connect(t.Context(), ledger.Config{URL: url, Tracer: onApply(func() {
		granted(t, l)
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	ch, err := control.Begin(t.Context(), slow, nil, control.By{Reason: "less", Author: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := ch.Make(t.Context(), func() (*config.Document, error) {
		return ch.Document.SetLimit("a", admission.Limit{Window: admission.Hour})
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Warnings) != 1 ||
		!strings.Contains(done.Warnings[0], "has granted 1 messages already") {
		t.Errorf("got %q", done.Warnings)
	}
}

// granted stores one message that has a slot of each limit of channel a.
func granted(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{
		Messages: []ledger.Message{drawn("m-1", 17, "a")}, Channels: []string{"a", "b", "c"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	gate := &seen.Channels[0].Gate
	gate.Roll(seen.Now, zone)
	for i := range gate.Counters {
		gate.Counters[i].Granted++ // for money this is a millionth
	}
	d := toFirstChoice(seen, &seen.Messages[0])
	d.Attempt.PriceMicros = 1
	if err := tx.Commit(t.Context(), ledger.Decisions{Each: []ledger.Decision{d}}); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorChecksTheLimitsInForce(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	got := dispatcher(t, "", env,
		withReason("closed", "limits", "set", "b", "--window", "1m", "--max", "0")...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	found, _ := diagnosis(t, env)
	if f := found["limit b 1m messages"]; f.Status != statusWarn {
		t.Errorf("got %+v", found)
	}
}

// TestAChannelShowsWhatALoweredLimitWillBe: beside what its current window still has.
func TestAChannelShowsWhatALoweredLimitWillBe(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	granted(t, l)
	if got := dispatcher(t, "", env,
		withReason("less", "limits", "set", "a", "--window", "1h",
			"--max", "0")...); got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	for as, want := range map[string]string{
		"table": "then 0", "csv": "1 of 1 messages/1h, then 0", "json": `"configured_max": 0`,
	} {
		got := dispatcher(t, "", env, "channel", "list", "--format", as)
		if got.code != exitOK || !strings.Contains(got.out, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	got := dispatcher(t, "", env, "channel", "list", "--format", "json")
	if !strings.Contains(got.out, `"active_max": null`) ||
		!strings.Contains(got.out, `"max": "2.50"`) {
		t.Errorf("got %+v, want %q in the output and %q in the output",
			got, `"active_max": null`, `"max": "2.50"`)
	}
}

func TestSettingsFitATerminalOf120Columns(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(dispatcher(t, "", nil, "config").out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestLimitsShowClaimsNoRateWhereNothingIsSlowedDown: without a limit per second, throttling causes
// a pause only.
func TestLimitsShowClaimsNoRateWhereNothingIsSlowedDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	gate := admission.Gate{Ease: admission.Ease{Rate: 0.5, Since: now.Add(-time.Second)}}
	for window, want := range map[admission.Window]float64{
		admission.Second: 0.55, admission.Minute: 1,
	} {
		doc := &config.Routing{
			Timezone: time.UTC,
			Channels: []config.Channel{
				{Name: "a", Limits: []admission.Limit{{Window: window, Max: 100}}},
			},
		}
		present := &ledger.Present{
			Now: now, Channels: []ledger.ChannelState{{Name: "a", Gate: gate}},
		}
		got := status.NewLimits(1, doc, present, nil).Channels[0]
		if math.Abs(got.Rate-want) > 1e-9 || got.Limits[0].Effective.Units != int64(100*want) {
			t.Errorf("%s: rate %v, %d of 100 in a window", window, got.Rate,
				got.Limits[0].Effective.Units)
		}
	}
}
