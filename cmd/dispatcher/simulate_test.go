package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// figuresOf has the keys of simulate admission that scripts rely on.
type figuresOf struct {
	Policies []struct {
		Policy          string   `json:"policy"`
		Free            *int64   `json:"free"`
		RegionSlots     *int64   `json:"region_slots"`
		AnywhereSlots   *int64   `json:"anywhere_slots"`
		PerWorker       *int64   `json:"per_worker"`
		Admitted        *int64   `json:"admitted"`
		Queued          *int64   `json:"queued"`
		Over            *int64   `json:"over"`
		EarlyPercent    *float64 `json:"early_percent"`
		OverPercent     *float64 `json:"over_percent"`
		UnusedPercent   *float64 `json:"unused_percent"`
		CallsPerMessage *float64 `json:"calls_per_message"`
		Overtaken       float64  `json:"overtaken_percent"`
		LatencyMs       float64  `json:"latency_ms"`
	} `json:"policies"`
}

func simulated(t *testing.T, file string, args ...string) figuresOf {
	t.Helper()
	got := dispatcher(t, "", nil,
		append([]string{"simulate", "admission", "--scenario", file, "--format", "json"},
			args...)...)
	var out figuresOf
	err := json.Unmarshal([]byte(got.out), &out)
	if err != nil || got.code != exitOK || got.err != "" {
		t.Fatalf("%s: %v, %+v", file, err, got)
	}
	return out
}

func shipped(name string) string { return filepath.Join("..", "..", "deploy", "scenarios", name) }

func TestSimulateGivesTheSharesOfTheSource(t *testing.T) {
	t.Parallel()
	sanJose := `{"limit": 200, "active": 50,
		"history": {"San Jose": 20, "London": 30, "Anywhere": 150},
		"workers": {"San Jose": 3, "total": 10}, "region": "San Jose", "curve_factor": 1}`
	for file, want := range map[string]string{
		write(t, "scenario.json",
			sanJose): "even 150 15 113 16, curve 150 15 113 60, counter 150 15 113 128, exact " +
			"150 0 150 150",
		shipped("worked.json"): "even 150 15 113 16, curve 150 15 113 60, counter 150 " +
			"15 113 128, exact 150 0 150 150",
		shipped("delhi.json"): "even 150 0 113 11, curve 150 0 113 45, counter 150 0 " +
			"113 113, exact 150 0 150 150",
		shipped("uneven-workers.json"): "even 10 10 0 5, curve 10 10 0 8, counter 10 10 0 10, " +
			"exact 10 0 10 10",
	} {
		var parts []string
		for _, p := range simulated(t, file).Policies {
			parts = append(parts,
				fmt.Sprintf("%s %d %d %d %d", p.Policy, *p.Free, *p.RegionSlots, *p.AnywhereSlots,
					*p.PerWorker))
		}
		if got := strings.Join(parts, ", "); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestSimulateReplaysTheArrivalsOfTheSource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"uneven-workers.json": "even 6 2 0, curve 8 0 0, counter 8 0 0, exact 8 0 0",
		"spike.json":          "even 10 5 0, curve 15 0 5, counter 10 5 0, exact 10 5 0",
	} {
		var parts []string
		for _, p := range simulated(t, shipped(name)).Policies {
			parts = append(parts,
				fmt.Sprintf("%s %d %d %d", p.Policy, *p.Admitted, *p.Queued, *p.Over))
		}
		if got := strings.Join(parts, ", "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// oneDecimal rounds as docs/admission.md does. Small values are not written as 0.
func oneDecimal(f float64) string {
	if f > 0 && f < 0.05 {
		return "<0.1"
	}
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}

func twoDecimals(
	f float64,
) string {
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
}

// TestShippedScenariosGiveWhatTheGuideSays runs every file of deploy/scenarios and compares the
// results with both tables of docs/admission.md.
func TestShippedScenariosGiveWhatTheGuideSays(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(shipped("*.json"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	guide := document(t, "admission.md")
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+\\.json)`.*? \\| "+
		"(.*) \\|$").FindAllStringSubmatch(guide, -1) {
		rows[m[1]] = append(rows[m[1]], m[2])
	}
	for _, file := range files {
		name := filepath.Base(file)
		start := time.Now()
		got := simulated(t, file)
		if took := time.Since(start); took > tier.LongestWait { // under a second on an idle machine
			t.Errorf("%s took %s", name, took)
		}
		var shares []string
		for _, p := range got.Policies {
			shares = append(shares,
				fmt.Sprintf("%s / %s / %s / %s", oneDecimal(*p.EarlyPercent),
					oneDecimal(p.Overtaken), oneDecimal(*p.OverPercent),
					oneDecimal(*p.UnusedPercent)))
		}
		counter, exact := got.Policies[2], got.Policies[3]
		calls := strings.Join([]string{
			twoDecimals(*counter.CallsPerMessage), twoDecimals(counter.LatencyMs),
			twoDecimals(*exact.CallsPerMessage), twoDecimals(exact.LatencyMs),
		}, " | ")
		want := []string{strings.Join(shares, " | "), calls}
		if *got.Policies[3].Admitted+*got.Policies[3].Queued == 0 {
			want = nil // it shows the division only
		}
		if len(rows[name]) == 0 && want != nil {
			t.Errorf("the guide leaves out %s: %s", name, want)
		}
		for i, row := range rows[name] {
			if i >= len(want) || row != want[i] {
				t.Errorf("%s: the guide says %s, want %s", name, row, want)
			}
		}
	}
}

func TestSimulateShowsTheAskedPoliciesInEachFormat(t *testing.T) {
	t.Parallel()
	file := shipped("uneven-workers.json")
	args := []string{
		"simulate", "admission", "--scenario", file, "--policy", "exact", "--policy", "even",
		"--format",
	}
	csv := dispatcher(t, "", nil, append(args, "csv")...)
	want := regexp.MustCompile(`^policy,free,region_slots,anywhere_slots,per_worker,arrived,` +
		`admitted,queued,early,overtaken,over,unused,stranded,early_percent,overtaken_percent,` +
		`over_percent,unused_percent,stranded_percent,calls_per_message,latency_ms,` +
		`latency_p95_ms,decision_ns
even,10,10,0,5,8,6,2,2,0,0,4,2,25,0,0,40,20,0,0,0,[0-9.e+]+
exact,10,0,10,10,8,8,0,0,0,0,2,0,0,0,0,20,0,1,60,60,[0-9.e+]+
$`)
	if csv.code != exitOK || !want.MatchString(csv.out) {
		t.Errorf("%+v, want %s", csv, want)
	}
	for as, want := range map[string]string{
		"table": "│ even", "svg": "<svg xmlns", "json": `"policy": "even"`,
	} {
		got := dispatcher(t, "", nil, append(args, as)...)
		if got.code != exitOK || got.err != "" || !strings.Contains(got.out, want) ||
			strings.Contains(got.out, "curve") {
			t.Errorf("%s: got %+v", as, got)
		}
		for line := range strings.Lines(got.out) {
			if as == "table" && len([]rune(line)) > 121 {
				t.Errorf("a line of %d characters", len([]rune(line)))
			}
		}
	}
}

func TestSimulateWithoutArrivalsShowsTheDivision(t *testing.T) {
	t.Parallel()
	got := dispatcher(t, "", nil, "simulate", "admission", "--scenario", shipped("worked.json"))
	if got.code != exitOK || !strings.Contains(got.out, "per worker") ||
		strings.Contains(got.out, "admitted") {
		t.Errorf("got %+v, want exit code %d, %q in the output and no %q in the output",
			got, exitOK, "per worker", "admitted")
	}
	got = dispatcher(t, "", nil, "simulate", "admission", "--scenario", shipped("worked.json"),
		"--format", "svg")
	if got.code != exitOK || !strings.Contains(got.out, "15 + 113, 16 each") {
		t.Errorf("got %+v, want exit code %d and %q in the output", got, exitOK, "15 + 113, 16 each")
	}
	for _, p := range simulated(t, shipped("worked.json")).Policies {
		if p.Admitted == nil || p.Queued == nil || p.Over == nil || p.EarlyPercent == nil ||
			p.UnusedPercent == nil || p.CallsPerMessage == nil {
			t.Errorf("%s lacks a key", p.Policy)
		}
	}
}

func TestSimulateReadsStandardInput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(shipped("delhi.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := dispatcher(t, string(text), nil, "simulate", "admission", "--scenario", "-",
		"--policy", "curve", "--format", "csv")
	if got.code != exitOK || !strings.Contains(got.out, "curve,150,0,113,45,") {
		t.Errorf("got %+v, want exit code %d and %q in the output", got, exitOK, "curve,150,0,113,45,")
	}
}

func TestSimulateNamesFileKeyAndFix(t *testing.T) {
	t.Parallel()
	bad := write(t, "bad.json", "{\"limit\": 10,\n \"actve\": 3}")
	quiet := shipped("worked.json")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown key": {
			[]string{"--scenario", bad}, bad + ":2: actve: unknown key; did you mean active?",
		},
		"no file": {
			[]string{"--scenario", "gone.json"},
			"--scenario: open gone.json: no such file or directory; correct the path",
		},
		"no flag": {nil, "--scenario is missing"},
		"format": {
			[]string{"--scenario", quiet, "--format", "xml"}, "must be table, json, csv or svg",
		},
		"policy": {
			[]string{"--scenario", quiet, "--policy", "odd"},
			`--policy: "odd" is none of even, curve, counter, exact`,
		},
		"argument": {[]string{quiet}, "unknown command"},
	} {
		got := dispatcher(t, "", nil, append([]string{"simulate", "admission"}, tc.args...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}

// TestSimulateExplainsItsColumns: below the table. The text separates what was measured from what
// is modelled.
func TestSimulateExplainsItsColumns(t *testing.T) {
	t.Parallel()
	table := dispatcher(t, "", nil, "simulate", "admission", "--scenario",
		shipped("uneven-workers.json"))
	text := strings.Join(strings.Fields(table.out), " ")
	for _, want := range []string{
		"early: queued although a slot stayed free; overtaken: queued, and a later one got in;",
		"unused: left at window ends", "ms: their time, modelled by call_ms.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, table.out)
		}
	}
	measured := regexp.MustCompile(
		`Measured ns of a decision: even \d+, curve \d+, counter \d+, exact \d+\.`)
	if !measured.MatchString(text) {
		t.Error(table.out)
	}
	quiet := dispatcher(t, "", nil, "simulate", "admission", "--scenario",
		shipped("worked.json")).out
	if strings.Contains(quiet, "early:") || strings.Contains(quiet, "Measured") {
		t.Error(quiet)
	}
}
