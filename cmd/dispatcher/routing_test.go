package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// seeded returns a database with testRouting as version 1.
func seeded(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	url := ledgertest.URL(t)
	return openSeeded(t, url), []string{"DISPATCHER_POSTGRES_URL=" + url}
}

// withReason appends the flags that every change needs.
func withReason(why string, args ...string) []string {
	return append(args, "--reason", why, "--author", "ann")
}

// applyRouting makes a document the routing in force.
func applyRouting(t *testing.T, env []string, file string) {
	t.Helper()
	got := dispatcher(t, "", env, withReason("as agreed", "routing", "apply", file)...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
}

// decoded decodes the JSON that a command printed.
func decoded[T any](t *testing.T, got result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}
	return v
}

func current(t *testing.T, l *ledger.Ledger) ledger.RoutingVersion {
	t.Helper()
	v, err := l.Routing.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRoutingApplyIsAVersionWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	file := write(t, "next.yaml", strings.Replace(testRouting, "a: 25", "a: 40", 1))
	got := dispatcher(t, "", env,
		withReason("a is cheaper", "routing", "apply", file, "--format", "json")...)
	done := decoded[control.Changed](t, got)
	from, to := "25", "40"
	want := []control.Line{{Path: "routes.default.weights.a", From: &from, To: &to}}
	if got.code != exitOK || done.Version != 2 || done.Previous != 1 || !done.Applied ||
		done.DryRun || !cmp.Equal(done.Changes, want) {
		t.Errorf("got %+v", got)
	}
	v := current(t, l)
	if v.Version != 2 || v.Author != "ann" || v.Reason != "a is cheaper" ||
		!strings.Contains(v.Document, "a: 40") {
		t.Errorf("got %+v", v)
	}
	shown := decoded[versionShown](t, dispatcher(t, "", env, "routing", "show", "--format", "json"))
	if shown.Version != 2 || shown.Base != 2 || shown.Author != "ann" ||
		string(shown.Effects) != "null" || !strings.Contains(shown.Document, "a: 40") {
		t.Errorf("got %+v", shown)
	}
	old := dispatcher(t, "", env, "routing", "show", "--version", "1")
	if old.out != testRouting || old.err != "" {
		t.Errorf("got %+v, want the output %q and nothing on standard error", old, testRouting)
	}
}

func TestRoutingApplyOfTheFirstDocument(t *testing.T) {
	t.Parallel()
	env := []string{"DISPATCHER_POSTGRES_URL=" + ledgertest.URL(t)}
	for _, args := range [][]string{
		{"routing", "show"},
		{"weights", "show"},
		{"channel", "list"},
		{"routing", "diff", "1"},
		withReason("x", "weights", "set", "default", "a=1"),
	} {
		got := dispatcher(t, "", env, args...)
		if got.code != exitUsage || !strings.Contains(got.err, "there is no routing yet") {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error",
				args, got, exitUsage, "there is no routing yet")
		}
	}
	got := dispatcher(t, testRouting, env,
		withReason("the agreement", "routing", "apply", "-", "--expect-version", "0")...)
	if got.code != exitOK ||
		!strings.Contains(got.out, "Version 1 is in force for every claim from now on.") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "Version 1 is in force for every claim from now on.")
	}
	got = dispatcher(t, testRouting, env,
		withReason("again", "routing", "apply", "-", "--expect-version", "0")...)
	if got.code != exitFailed {
		t.Errorf("got %+v, want exit code %d", got, exitFailed)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	file := write(t, "next.yaml", strings.Replace(testRouting, "a: 25", "a: 40", 1))
	for _, args := range [][]string{
		{"routing", "apply", file},
		{"weights", "set", "default", "a=40"},
		{"channel", "drain", "a"},
		{"weights", "ramp", "default", "a=40"},
	} {
		got := dispatcher(t, "", env, append(args, "--dry-run")...)
		if got.code != exitOK || !strings.Contains(got.out, "Dry run: nothing was written") {
			t.Errorf("%v: got %+v, want exit code %d and %q in the output",
				args, got, exitOK, "Dry run: nothing was written")
		}
	}
	ramps, err := l.Ramps.List(t.Context(), true)
	if v := current(t, l); v.Version != 1 || err != nil || len(ramps) != 0 {
		t.Errorf("%+v %v %v", v, ramps, err)
	}
}

// TestTwoEditorsCannotOverwriteEachOther: the error for the second editor names the first one, with
// time and reason.
func TestTwoEditorsCannotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	got := dispatcher(t, "", env,
		withReason("ann was quicker", "weights", "set", "default", "a=40")...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	file := write(t, "mine.yaml", strings.Replace(testRouting, "b: 15", "b: 5", 1))
	for _, args := range [][]string{
		{"routing", "apply", file},
		{"weights", "set", "default", "b=5"},
		{"channel", "disable", "b"},
		{"routing", "rollback", "1"},
		{"weights", "ramp", "default", "b=5"},
		{"routing", "apply", file, "--dry-run"},
	} {
		got := dispatcher(t, "", env,
			append(args, "--expect-version", "1", "--reason", "mine", "--author", "bob")...)
		for _, want := range []string{
			"after version 1", "ann applied version 2 at 20", `"ann was quicker"`,
			"routing diff 1 2", "--expect-version 2",
		} {
			if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, want) {
				t.Errorf("%v: %+v lacks %q", args, got, want)
			}
		}
	}
	if v := current(t, l); v.Version != 2 {
		t.Errorf("got %+v, want Version %v", v, 2)
	}
	got = dispatcher(t, "", env, withReason("x", "channel", "drain", "a", "--expect-version", "7")...)
	if got.code != exitFailed ||
		!strings.Contains(got.err, "no routing version 7 yet, the current one is 2") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitFailed, "no routing version 7 yet, the current one is 2")
	}
	got = dispatcher(t, "", env, withReason("x", "channel", "drain", "a", "--expect-version", "2")...)
	if got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
}

// TestEffectsDoNotConflictWithEdits: a version that only lowered a weight does not conflict with an
// editor's change. Applying the same document again is not a change.
func TestEffectsDoNotConflictWithEdits(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	healthy := strings.Replace(testRouting, "c: 60}}", "c: 60}, health: {errors: 5}}", 1)
	file := write(t, "health.yaml", healthy)
	applyRouting(t, env, file)
	_, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
		Expect: 2, Author: "health", Reason: "default: c 60 -> 45",
		Overrides: []byte(`{"weights":{"default":{"c":"45"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := dispatcher(t, "", env, withReason("same", "routing", "apply", file)...)
	if got.code != exitOK || !strings.Contains(got.out, "That is what version 3 says already") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "That is what version 3 says already")
	}
	shown := decoded[versionShown](t, dispatcher(t, "", env, "routing", "show", "--format", "json"))
	if shown.Version != 3 || shown.Base != 2 || !strings.Contains(string(shown.Effects), "45") {
		t.Errorf("got %+v", shown)
	}
	table := dispatcher(t, "", env, "weights", "show", "default", "--format", "csv").out
	if !strings.Contains(table, "default,weighted,c,60,45,0.5294") {
		t.Error(table)
	}
	history := dispatcher(t, "", env, "routing", "history", "--format", "csv").out
	if !strings.Contains(history, "effect on version 2: ") ||
		!strings.Contains(history, "effective_weights.c 60 → 45") {
		t.Error(history)
	}
	got = dispatcher(t, "", env,
		withReason("less", "weights", "set", "default", "a=20", "--expect-version", "2")...)
	if got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
}

func TestAChangeWithoutEffectAppliesNothing(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	same := write(t, "same.yaml", "# only a remark\n"+testRouting)
	for want, args := range map[string][]string{
		"Only comments or the layout differ from version 1": {"routing", "apply", same},
		"That is what version 1 says already": {
			"weights", "set", "default", "a=25.0", "c=60",
		},
		"already: nothing to apply": {"channel", "enable", "a"},
		"nothing to apply":          {"routing", "rollback", "1"},
		"has these weights already": {"weights", "ramp", "default", "a=25"},
	} {
		got := dispatcher(t, "", env, withReason("none", args...)...)
		if got.code != exitOK || !strings.Contains(got.out, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	if v := current(t, l); v.Version != 1 {
		t.Errorf("got %+v, want Version %v", v, 1)
	}
}

func TestRoutingRollbackAppliesTheOldDocumentAsANewVersion(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	for _, args := range [][]string{
		{"weights", "set", "default", "a=40"}, {"channel", "drain", "b"},
	} {
		if got := dispatcher(t, "", env, withReason("try", args...)...); got.code != exitOK {
			t.Fatalf("got %+v, want exit code %d", got, exitOK)
		}
	}
	got := dispatcher(t, "", env, withReason("it was worse", "routing", "rollback", "1")...)
	v := current(t, l)
	if got.code != exitOK || v.Version != 4 || v.Document != testRouting ||
		v.Reason != "it was worse" {
		t.Errorf("%+v %+v", got, v)
	}
	for _, bad := range []string{"9", "x", "0"} {
		got := dispatcher(t, "", env, withReason("x", "routing", "rollback", bad)...)
		if got.code != exitUsage || !strings.Contains(got.err, "routing history") {
			t.Errorf("%s: got %+v, want exit code %d and %q in the error",
				bad, got, exitUsage, "routing history")
		}
	}
	h := decoded[history](t,
		dispatcher(t, "", env, "routing", "history", "--format", "json", "--limit", "2"))
	if len(h.Versions) != 2 || h.Versions[0].Version != 4 || len(h.Versions[0].Changes) != 2 ||
		h.Versions[1].Author != "ann" || h.Ramps == nil {
		t.Errorf("got %+v", h)
	}
	login := h.Versions[1].Login
	for _, as := range []string{"csv", "table"} {
		if got := dispatcher(t, "", env, "routing", "history", "--format", as).out; login == "" ||
			!strings.Contains(got, login) || !strings.Contains(got, "login") {
			t.Errorf("the login %q of version 3 is not in\n%s", login, got)
		}
	}
}

func TestRoutingDiffOfFilesAndVersions(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	got := dispatcher(t, "", env, withReason("try", "weights", "set", "default", "a=40")...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	file := write(t, "mine.yaml", strings.Replace(testRouting, "a: 25", "a: 41", 1))
	for want, args := range map[string][]string{
		"40>41": {file}, "25>40": {"1"}, "40>25": {"2", "1"}, "25>41": {"1", file},
	} {
		d := decoded[control.Comparison](t,
			dispatcher(t, "", env,
				append([]string{"routing", "diff", "--format", "json"}, args...)...))
		from, to, _ := strings.Cut(want, ">")
		if len(d.Changes) != 1 || *d.Changes[0].From != from || *d.Changes[0].To != to ||
			!strings.Contains(d.Unified, "+  - {name: default, match: {}, weights: {a: "+to) {
			t.Errorf("%v: got %+v", args, d)
		}
	}
	got = dispatcher(t, "", env, "routing", "diff", "1", "2", "--exit-code")
	if got.code != exitFailed || got.err != "" {
		t.Errorf("got %+v, want exit code %d and nothing on standard error", got, exitFailed)
	}
	got = dispatcher(t, "", env, "routing", "diff", "2", "--exit-code")
	if got.code != exitOK || !strings.Contains(got.out, "are the same") {
		t.Errorf("got %+v, want exit code %d and %q in the output", got, exitOK, "are the same")
	}
}

func TestARefusedDocumentIsAUsageErrorWithItsLines(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	bad := write(t, "bad.yaml", strings.Replace(testRouting, "capacity: 100", "capcity: 100", 1))
	smpp := write(t, "smpp.yaml",
		strings.Replace(testRouting, "provider: sandbox", "provider: smpp", 1))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"key": {
			[]string{"routing", "apply", bad},
			bad + ":3: channels.a.capcity: there is no such key; did you mean capacity?",
		},
		"adapter": {[]string{"routing", "apply", smpp}, smpp + ": channels.a.settings: "},
		"no file": {
			[]string{"routing", "apply", "gone.yaml"},
			"open gone.yaml: no such file or directory; correct the path",
		},
		"zeros": {
			[]string{"weights", "set", "default", "a=0", "b=0", "c=0"}, "all weights are 0",
		},
		"not weight": {
			[]string{"weights", "set", "default", "a=-1"}, "channel a: weight -1 is negative",
		},
		"no equals": {[]string{"weights", "set", "default", "a"}, `"a" is not a weight`},
		"twice": {
			[]string{"weights", "set", "default", "a=1", "a=2"}, "channel a is named twice",
		},
		"no channel": {[]string{"weights", "set", "default", "z=1"}, `there is no channel "z"`},
		"no route": {
			[]string{"weights", "set", "z", "a=1"}, `there is no route "z"; choose one of default`,
		},
		"drain": {
			[]string{"channel", "drain", "z"}, `there is no channel "z"; choose one of a, b, c`,
		},
	} {
		got := dispatcher(t, "", env, withReason("x", tc.args...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
	got := dispatcher(t, "", env, "channel", "drain", "a")
	if got.code != exitUsage || !strings.Contains(got.err, "--reason is missing") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, "--reason is missing")
	}
	if v := current(t, l); v.Version != 1 {
		t.Errorf("got %+v, want Version %v", v, 1)
	}
}

func TestTheAuthorIsWhoIsLoggedIn(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := (&cli{env: []string{"HOME=/", "USER=ann"}}).user(); got != "ann@"+host {
		t.Error(got)
	}
	if got := (&cli{}).user(); strings.HasPrefix(got, "@") {
		t.Error(got)
	}
}

func TestSummariesAreShort(t *testing.T) {
	t.Parallel()
	p := control.OrNil
	for want, changes := range map[string][]control.Line{
		"": nil,
		"routes.default.weights.a 25 → 40, c 60 → 45": {
			{Path: "routes.default.weights.a", From: p("25"), To: p("40")},
			{Path: "routes.default.weights.c", From: p("60"), To: p("45")},
		},
		"timezone UTC → CET; channels.d.provider added (smpp)": {
			{Path: "timezone", From: p("UTC"), To: p("CET")}, {Path: "channels.d.provider", From: nil, To: p("smpp")},
		},
		"a removed; b removed; c removed; d removed; 1 more": {
			{Path: "a", From: p("1"), To: nil},
			{Path: "b", From: p("1"), To: nil},
			{Path: "c", From: p("1"), To: nil},
			{Path: "d", From: p("1"), To: nil},
			{Path: "e", From: p("1"), To: nil},
		},
		"x added (" + strings.Repeat("y", 39) +
			"…)": {{Path: "x", From: nil, To: p(strings.Repeat("y", 400))}},
	} {
		if got := control.Summary(changes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The secrets of a channel may be on another machine than the one where the document is applied.
// That causes one warning.
func TestApplyWarnsOfSecretsThatAreNotOnThisMachine(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	with := strings.Replace(testRouting, "channels:\n",
		"channels:\n  t: {provider: sinch, settings: {service_plan_id: plan, token_file: "+
			"/nowhere/token}}\n",
		1)
	if with == testRouting {
		t.Fatal("the document was changed")
	}
	first := decoded[control.Changed](t,
		dispatcher(t, "", env,
			withReason("a carrier", "routing", "apply", write(t, "next.yaml", with),
				"--format", "json")...))
	if !first.Applied || len(first.Warnings) != 1 ||
		!strings.Contains(first.Warnings[0],
			"Channel t names /nowhere/token, which cannot be read in the secrets folder of this "+
				"machine") {
		t.Errorf("got %+v", first)
	}
	then := decoded[control.Changed](t,
		dispatcher(t, "", env,
			withReason("weights", "routing", "apply",
				write(t, "next.yaml",
					strings.Replace(with, "a: 25", "a: 40", 1)), "--format", "json")...))
	if !then.Applied || len(then.Warnings) != 0 {
		t.Errorf("got %+v, want Applied and %d in Warnings", then, 0)
	}
}

// TestTheHistoryShowsEffectsAsMovesOfTheWeight: down from the configured weight, and back to it.
func TestTheHistoryShowsEffectsAsMovesOfTheWeight(t *testing.T) {
	t.Parallel()
	l, env := lowered(t)
	_, err := l.Routing.ApplyEffects(t.Context(), ledger.NewEffects{Expect: 3, Author: "health"})
	if err != nil {
		t.Fatal(err)
	}
	h := decoded[history](t, dispatcher(t, "", env, "routing", "history", "--format", "json"))
	for i, want := range []string{"15>60", "60>15"} {
		line := h.Versions[i]
		if len(line.Changes) != 1 ||
			orEmpty(line.Changes[0].From)+">"+orEmpty(line.Changes[0].To) != want ||
			!line.EffectsOnly {
			t.Errorf("%+v, want %s", line, want)
		}
	}
	text := dispatcher(t, "", env, "routing", "history", "--format", "json").out
	if !strings.Contains(text, `"effects_only": true`) || strings.Contains(text, `"effects":`) {
		t.Error(text)
	}
}

// TestAFileIsComparedWithTheDocumentOfAVersion: effects are in neither, and stay when the file is
// applied.
func TestAFileIsComparedWithTheDocumentOfAVersion(t *testing.T) {
	t.Parallel()
	l, env := lowered(t)
	file := write(t, "mine.yaml", current(t, l).Document)
	if got := dispatcher(t, "", env, "routing", "diff", file, "--exit-code"); got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
	between := decoded[control.Comparison](t,
		dispatcher(t, "", env, "routing", "diff", "2", "3", "--format", "json"))
	if len(between.Changes) != 1 ||
		between.Changes[0].Path != "routes.default.effective_weights.c" ||
		*between.Changes[0].From != "60" || *between.Changes[0].To != "15" {
		t.Errorf("got %+v", between)
	}
}

func TestTheHistoryHasNoMoreRampsThanAskedFor(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	for _, args := range [][]string{{"a=40"}, {"--cancel"}, {"a=41"}, {"--cancel"}} {
		got := dispatcher(t, "", env,
			withReason("try", append([]string{"weights", "ramp", "default"}, args...)...)...)
		if got.code != exitOK {
			t.Fatalf("%v: got %+v, want exit code %d", args, got, exitOK)
		}
	}
	h := decoded[history](t,
		dispatcher(t, "", env, "routing", "history", "--limit", "1", "--format", "json"))
	if len(h.Versions) != 1 || len(h.Ramps) != 1 || h.Ramps[0].ID != 2 || h.Ramps[0].Held != "" ||
		h.Ramps[0].Why != "try" {
		t.Errorf("got %+v", h)
	}
}

func TestCommentsAloneAreAppliedWhenForced(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	file := write(t, "remark.yaml", "# agreed until spring\n"+testRouting)
	got := dispatcher(t, "", env, withReason("remark", "routing", "apply", file)...)
	if got.code != exitOK || !strings.Contains(got.out, "--force applies it all the same") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "--force applies it all the same")
	}
	got = dispatcher(t, "", env, "routing", "apply", file, "--force", "--dry-run")
	if got.code != exitOK || !strings.Contains(got.out, "Dry run: nothing was written") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "Dry run: nothing was written")
	}
	got = dispatcher(t, "", env, withReason("remark", "routing", "apply", file, "--force")...)
	v := current(t, l)
	if got.code != exitOK || v.Version != 2 || !strings.HasPrefix(v.Document, "# agreed") ||
		!strings.Contains(got.out, "Version 2 is in force") {
		t.Errorf("%+v %+v", got, v)
	}
}

func TestErrorsOfStoredDocumentsNameTheVersion(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	got := dispatcher(t, "", env,
		withReason("none", "weights", "set", "default", "a=0", "b=0", "c=0")...)
	if got.code != exitUsage ||
		!strings.Contains(got.err, "routing version 1 with the change:7: ") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "routing version 1 with the change:7: ")
	}
}
