package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// sick is testRouting with health weighting, and c lowered from 60 to 15 as version 3.
func sick(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	l, env = seeded(t)
	file := write(t, "health.yaml", strings.Replace(testRouting, "c: 60}}", "c: 60}, health: {errors: 5}}", 1))
	if got := dispatcher(t, "", env, because("watch", "routing", "apply", file)...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if _, err := l.ApplyEffects(t.Context(), ledger.NewEffects{Expect: 2, Author: "health", Effects: []byte(`{"weights":{"default":{"c":"15"}}}`)}); err != nil {
		t.Fatal(err)
	}
	return l, env
}

// TestWhoeverEditsWeightsIsToldOfHealthEffects: draws go by 25, 15 and 15, so those are the intervals.
func TestWhoeverEditsWeightsIsToldOfHealthEffects(t *testing.T) {
	t.Parallel()
	l, env := sick(t)
	dry := dispatcher(t, "", env, "weights", "set", "default", "a=31", "--dry-run")
	for _, want := range []string{"60 (15)", "40–54", "46–60", "health weighting keeps c at the effective weight 15 instead of 60"} {
		if text := strings.Join(strings.Fields(dry.out), " "); dry.code != exitOK || !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, dry.out)
		}
	}
	done := decoded[changed](t, dispatcher(t, "", env, because("more", "weights", "set", "default", "a=31", "--format", "json")...))
	c := done.After.Intervals[2]
	if done.Before.Size != 55 || done.After.Size != 61 || c.Weight.String() != "15" || c.Configured.String() != "60" || len(done.Warnings) != 1 {
		t.Errorf("%+v", done)
	}
	v := current(t, l)
	doc, err := storedRouting(&v)
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := report.PreviewRoute(&doc.Routes[0]); err != nil || stored.Size != done.After.Size {
		t.Errorf("it said %d and draws go by %d, %v", done.After.Size, stored.Size, err)
	}
}

// TestTheHistoryTellsEffectsAsMovesOfTheWeight: down from the configured weight, and back to it.
func TestTheHistoryTellsEffectsAsMovesOfTheWeight(t *testing.T) {
	t.Parallel()
	l, env := sick(t)
	if _, err := l.ApplyEffects(t.Context(), ledger.NewEffects{Expect: 3, Author: "health"}); err != nil {
		t.Fatal(err)
	}
	h := decoded[history](t, dispatcher(t, "", env, "routing", "history", "--format", "json"))
	for i, want := range []string{"15>60", "60>15"} {
		line := h.Versions[i]
		if len(line.Changes) != 1 || orEmpty(line.Changes[0].From)+">"+orEmpty(line.Changes[0].To) != want || !line.EffectsOnly {
			t.Errorf("%+v, want %s", line, want)
		}
	}
	if text := dispatcher(t, "", env, "routing", "history", "--format", "json").out; !strings.Contains(text, `"effects_only": true`) || strings.Contains(text, `"effects":`) {
		t.Error(text)
	}
}

// TestAFileIsComparedWithTheDocumentOfAVersion: effects are no part of either, and stay when the file is applied.
func TestAFileIsComparedWithTheDocumentOfAVersion(t *testing.T) {
	t.Parallel()
	l, env := sick(t)
	file := write(t, "mine.yaml", current(t, l).Document)
	if got := dispatcher(t, "", env, "routing", "diff", file, "--exit-code"); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	between := decoded[comparison](t, dispatcher(t, "", env, "routing", "diff", "2", "3", "--format", "json"))
	if len(between.Changes) != 1 || between.Changes[0].Path != "routes.default.effective_weights.c" || *between.Changes[0].From != "60" || *between.Changes[0].To != "15" {
		t.Errorf("%+v", between)
	}
}

func TestTheHistoryHasNoMoreRampsThanAskedFor(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	for _, args := range [][]string{{"a=40"}, {"--cancel"}, {"a=41"}, {"--cancel"}} {
		if got := dispatcher(t, "", env, because("try", append([]string{"weights", "ramp", "default"}, args...)...)...); got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	h := decoded[history](t, dispatcher(t, "", env, "routing", "history", "--limit", "1", "--format", "json"))
	if len(h.Versions) != 1 || len(h.Ramps) != 1 || h.Ramps[0].ID != 2 || h.Ramps[0].Held != "" || h.Ramps[0].Why != "try" {
		t.Errorf("%+v", h)
	}
}

// TestTablesFitATerminalOf120Columns with names and figures of a large installation.
func TestTablesFitATerminalOf120Columns(t *testing.T) {
	t.Parallel()
	share, effective, moment := 0.3333, 0.25, time.Now()
	long := strings.Repeat("a reason that somebody took the time to write down ", 3)
	row := report.DailyRow{
		Route: "transactional", Channel: "provider-west-2", ConfiguredShare: &share, EffectiveShare: &effective, FirstChoice: 123456, Fallback: 12345,
		Accepted: 123456, Delivered: 123456, Failed: 1234, Unknown: 123, Segments: 1234567, CostMicros: 12345678900, Currency: "GBP", NoReceipt: 12345,
	}
	var weights []changeLine
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		weights = append(weights, changeLine{Path: "routes.transactional.weights." + name, From: present("33.333"), To: present(long)})
	}
	ramp := rampShown{
		ID: 1234, Route: "transactional", To: map[string]string{"provider-east": "33.333", "provider-west": "66.667"}, State: "superseded", Step: 12, Steps: 144,
		ChangedAt: &moment, ChangedBy: "ann@operations-7.example.net", Author: "ann@operations-7.example.net", Reason: long, Why: long,
	}
	for name, s := range map[string]sheet{
		"daily":   routeTable(&report.Daily{Totals: []report.DailyTotal{{Route: row.Route, CostMicros: row.CostMicros, Currency: "GBP"}}}, []report.DailyRow{row, row}),
		"history": historySheet([]historyLine{{Version: 123456, Author: "ann@operations-7.example.net", Reason: long, Changes: weights}}, formatTable),
		"ramps":   rampSheet([]rampShown{ramp}, formatTable),
		"changes": changeSheet(weights),
		"channels": channelSheet(7, []channelShown{{
			Channel: "provider-west-2", Provider: "sandbox", State: "draining", Capacity: 100000, Active: 12345, LastAssigned: &moment,
			Limits: []limitShown{
				{"1s", "messages", "", quantity{1000, false}, quantity{900, false}, quantity{1000, false}, quantity{}},
				{"1d", "segments", "", quantity{1000000, false}, quantity{1000000, false}, quantity{999999, false}, quantity{}},
				{"1d", "money", "GBP", quantity{250_000_000, true}, quantity{250_000_000, true}, quantity{12_345_678, true}, quantity{}},
			}, Routes: []string{"transactional", "default"},
		}}, formatTable),
		"limits":       limitSheet(hugeLimits()),
		"limits' side": channelLimitSheet(hugeLimits()),
		"waiters":      waiterSheet(hugeLimits()),
		"limit moves": limitMoveSheet([]limitMove{{
			Version: 123456, Author: "ann@operations-7.example.net", Reason: long, Channel: "provider-west-2", What: "reserve.transactional",
			key: admission.Key{Window: admission.Day, Unit: admission.Segments, Scope: admission.Scope{Tenant: "a-large-tenant"}}, From: present("100%"), To: present("1000000.123456 GBP"),
		}}),
		"attempts": attemptSheet([]report.Attempt{{
			Attempt: 2, Channel: "provider-west-2", Reason: "first_choice", Outcome: "throttled", Code: "0x00000058", Reference: strings.Repeat("0f", 16), CostMicros: 123456, Currency: "GBP",
		}}),
	} {
		var out strings.Builder
		s.draw(&out)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
				t.Errorf("%s is %d wide:\n%s", name, n, out.String())
				break
			}
		}
	}
}

// hugeLimits has a limit with long names and large amounts.
func hugeLimits() *limitsNow {
	factor, moment, most := 0.125, time.Now(), int64(100000)
	later := moment.Add(50 * time.Hour)
	money := func(units int64) quantity { return quantity{units, true} }
	return &limitsNow{Version: 123456, Timezone: "America/Argentina/Buenos_Aires", zone: time.UTC, Waiting: []waitersNow{
		{On: "provider-west-2 tenant:a-large-tenant 1d segments", Reason: "no_budget", Messages: 1234567, Next: later},
	}, Channels: []channelLimits{{
		Channel: "provider-west-2", Policy: "curve", CurveFactor: &factor, Rate: 0.5, PausedUntil: &later, Active: 112345, ActiveMax: &most, ActiveUntil: "receipt", Waiting: 10000,
		Limits: []limitNow{{
			Scope: "tenant:a-large-tenant", Window: "1d", Unit: "money", Currency: "GBP", Max: money(1_000_000_000_000), ConfiguredMax: money(900_000_000_000), Granted: money(1_000_000_000_000),
			NextPlace: &later, burst: "burst 123456, then 876545 per 1d",
			Waiting: 10000, Reserve: map[string]int64{"otp": 20, "transactional": 5}, ends: "22 Nov 00:00",
			key: admission.Key{Window: admission.Day, Unit: admission.Money, Scope: admission.Scope{Tenant: "a-large-tenant"}},
		}},
	}}}
}

// TestWarningsOfACSVGoToStandardError so that the rows stay rows.
func TestWarningsOfACSVGoToStandardError(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	for _, channel := range []string{"a", "b"} {
		if got := dispatcher(t, "", env, because("all", "channel", "drain", channel, "--format", "csv")...); got.code != exitOK || got.err != "" {
			t.Errorf("%+v", got)
		}
	}
	got := dispatcher(t, "", env, because("all", "channel", "drain", "c", "--format", "csv")...)
	if got.code != exitOK || !strings.Contains(got.err, "Route default has no channel left") || got.out != "what,from,to\nchannels.c.state,enabled,draining\n" {
		t.Errorf("%+v", got)
	}
	ramp := dispatcher(t, "", env, because("slowly", "weights", "ramp", "default", "a=40", "--steps", "1", "--format", "csv")...)
	if ramp.code != exitOK || !strings.HasPrefix(ramp.out, "ramp,step,at,a\n1,0,now,25\n1,1,") || !strings.Contains(ramp.err, "Ramp 1 of route default") {
		t.Errorf("%+v", ramp)
	}
	none := dispatcher(t, "", env, because("back", "channel", "enable", "c", "--format", "json")...)
	if !strings.Contains(none.out, `"warnings": []`) {
		t.Errorf("%+v", none)
	}
}

func TestForecastsInCSVHaveEveryDigit(t *testing.T) {
	t.Parallel()
	document := routeOver("mode: best_worker", "a: labels: {x: y}", "b: labels: {x: z}")
	got := dispatcher(t, "", nil, "explain", "--format", "csv", "--routing", write(t, "r.yaml", document),
		"--message", write(t, "m.json", `{"id":"1","to":"+447700900123","text":"hi","labels":{"x":"y","v":"1","w":"1"}}`))
	if !strings.Contains(got.out, "a,0.3333333333333333,0,true,\n") {
		t.Errorf("%+v", got)
	}
}

// TestForecastsDrawWithTheKeyOfAStoppedEmbeddedServer, whose file lies in the data folder.
func TestForecastsDrawWithTheKeyOfAStoppedEmbeddedServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	hex := strings.Repeat("02", selector.KeySize)
	key, err := selector.ParseKey(hex)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, embeddedKeyFile), []byte(hex+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPATCHER_DATA_DIR=" + folder}
	files := []string{"--routing", write(t, "routing.yaml", testRouting), "--message", write(t, "message.json", testMessage), "--format", "json"}
	story := decoded[report.Story](t, dispatcher(t, "", env, append([]string{"explain"}, files...)...))
	if story.DrawKeyID != key.ID() || strings.Contains(story.Text, "demo key") {
		t.Errorf("%+v", story)
	}
	if got := dispatcher(t, "", env, "keys", "show", "--format", "csv"); got.code != exitOK || !strings.Contains(got.out, key.ID()) {
		t.Errorf("%+v", got)
	}
	elsewhere := append(env, "DISPATCHER_POSTGRES_URL=postgres://u@127.0.0.1:1/x")
	if got := dispatcher(t, "", elsewhere, "keys", "show"); got.code != exitUsage || !strings.Contains(got.err, "DISPATCHER_DRAW_KEY_FILE is missing") {
		t.Errorf("a database of its own has other keys: %+v", got)
	}
}

// TestForecastsAskTheScoringFunctionWithItsToken, and say so when the file cannot be read.
func TestForecastsAskTheScoringFunctionWithItsToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"scores":[{"channel":"a","score":0.2},{"channel":"b","score":0.9}]}`)
	}))
	t.Cleanup(server.Close)
	document := routeOver(`mode: best_worker, scoring: {function: "`+server.URL+`", batch: true, deadline: 5s, token_file: token}`, "a: labels: {x: y}", "b: capacity: 1")
	routing := write(t, "routing.yaml", document)
	forecast := func() report.Story {
		return decoded[report.Story](t, dispatcher(t, testMessage, nil, "explain", "--format", "json", "--routing", routing, "--message", "-"))
	}
	if story := forecast(); story.Trouble != "function_status" || !strings.Contains(story.Text, "was asked without its token: scoring.token_file: open ") {
		t.Errorf("%+v", story)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(routing), "token"), []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if story := forecast(); channelOf(&story) != "b" || story.Trouble != "" || strings.Contains(story.Text, "token") {
		t.Errorf("%+v", story)
	}
}

func TestForecastsNameTheFlagAndThePlaceOfWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct{ message, state string }{
		"message.json:2:9: the record is not": {"{\"id\":\"1\",\n  \"to\": +44}", ""},
		"--message: ":                         {`{"id":"1"}`, ""},
		"more follows behind it":              {testMessage, "{} {}"},
	} {
		if _, got := forecastOf(t, tc.message, tc.state); got.code != exitUsage || !strings.Contains(got.err, want) || !strings.Contains(got.err, "--") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestCommentsAloneAreAppliedWhenForced(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	file := write(t, "remark.yaml", "# agreed until spring\n"+testRouting)
	if got := dispatcher(t, "", env, because("remark", "routing", "apply", file)...); got.code != exitOK || !strings.Contains(got.out, "--force applies it all the same") {
		t.Errorf("%+v", got)
	}
	if got := dispatcher(t, "", env, "routing", "apply", file, "--force", "--dry-run"); got.code != exitOK || !strings.Contains(got.out, "Dry run: nothing was written") {
		t.Errorf("%+v", got)
	}
	got := dispatcher(t, "", env, because("remark", "routing", "apply", file, "--force")...)
	if v := current(t, l); got.code != exitOK || v.Version != 2 || !strings.HasPrefix(v.Document, "# agreed") || !strings.Contains(got.out, "Version 2 is in force") {
		t.Errorf("%+v %+v", got, v)
	}
}

// TestWrongArgumentsAreAnsweredWithTheUsageLine and one sentence in our own words.
func TestWrongArgumentsAreAnsweredWithTheUsageLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"name what to do: verify":                 {"audit"},
		"name what to do: apply, diff, history":   {"routing"},
		"an argument is missing\nUsage: disp":     {"routing", "apply"},
		`an argument is missing behind "default"`: {"weights", "set", "default"},
		`"c" is one argument too many`:            {"routing", "diff", "a", "b", "c"},
		"that is no version: write a number":      {"channel", "drain", "a", "--expect-version", "abc"},
		"that is no time span: write":             {"weights", "ramp", "default", "--over", "later"},
		"Usage: dispatcher weights ramp ROUTE":    {"weights", "ramp", "default", "--over", "-1h"},
		"exclude each other: name one":            {"weights", "ramp", "default", "--hold", "--cancel"},
	} {
		if got := dispatcher(t, "", nil, args...); got.code != exitUsage || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	help := dispatcher(t, "", nil, "help", "channel", "drain").out
	if strings.Contains(help, "(default )") || strings.Contains(help, "default: no check") {
		t.Error(help)
	}
}

func TestARampMayLastDays(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	got := dispatcher(t, "", env, "weights", "ramp", "default", "a=40", "--over", "400d", "--steps", "4", "--dry-run", "--format", "json")
	if started := decoded[rampStarted](t, got); started.Ramp.EverySeconds != 100*24*3600 {
		t.Errorf("%+v", got)
	}
	var f overFlag
	for text, want := range map[string]string{"2d": "2d", "48h": "2d", "90m": "1h30m0s"} {
		if err := f.Set(text); err != nil || f.String() != want {
			t.Errorf("%s: %s %v", text, &f, err)
		}
	}
	for _, bad := range []string{"d", "-1d", "1.5d", "999999999d", "x", ""} {
		if err := f.Set(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestErrorsOfStoredDocumentsNameTheVersion(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	got := dispatcher(t, "", env, because("none", "weights", "set", "default", "a=0", "b=0", "c=0")...)
	if got.code != exitUsage || !strings.Contains(got.err, "routing version 1 with the change: ") {
		t.Errorf("%+v", got)
	}
}
