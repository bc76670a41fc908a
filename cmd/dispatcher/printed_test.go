package main

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/bench"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/demo"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/cmd/dispatcher/internal/simulate"
	"dispatcher/cmd/dispatcher/internal/status"
)

var updatePrinted = flag.Bool("update-printed", false, "write testdata/printed.txt anew")

// TestWhatCommandsPrint compares the tables and CSV of the commands with testdata/printed.txt:
// scripts rely on the columns of CSV. All values are different. After an intended change, "go test
// -run TestWhatCommandsPrint -update-printed ./cmd/dispatcher" rewrites the file.
func TestWhatCommandsPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, as := range []format{formatTable, formatCSV} {
		for _, one := range printedSheets(as) {
			if one.only != "" && one.only != as {
				continue
			}
			if as == formatCSV && strings.Contains(strings.Join(one.sheet.header, ""), " ") {
				t.Errorf("%s: a column name has a blank: %q", one.name, one.sheet.header)
			}
			out.WriteString("== " + one.name + " " + as.String() + "\n")
			if err := as.write(&out, nil, one.sheet); err != nil {
				t.Fatal(err)
			}
		}
	}
	const golden = "testdata/printed.txt"
	if *updatePrinted {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if i >= len(got) || i >= len(old) || got[i] != old[i] {
			t.Fatalf("line %d differs; it is now\n%s", i+1, strings.Join(got[i:min(i+3, len(got))],
				"\n"))
		}
	}
}

type printedSheet struct {
	name  string
	sheet sheet
	only  format // empty for both formats
}

// printedSheets are the tables of the commands that print more than one row.
func printedSheets(as format) []printedSheet {
	now := filled[status.Limits]()
	now.Zone, now.Timezone = time.UTC, "UTC"
	daily := filled[report.Daily]()
	started := control.RampStarted{Applied: true, Ramp: filled[control.Ramp](), Plan: filled[[]control.RampStep]()}
	before, after := filled[report.RoutePreview](), filled[report.RoutePreview]()
	settle := filled[settledMany]()
	verification := filled[verification]()
	invariants := filled[invariantsFound]()
	return []printedSheet{
		{"ambiguous", ambiguitySheet(filled[[]ambiguityLine](), as), ""},
		{"contradictions", contradictionSheet(filled[[]control.Contradiction]()), formatTable},
		{
			"contradiction rows",
			ambiguitySheet([]ambiguityLine{contradictedLine(new(filled[control.Contradiction]()))}, as),
			formatCSV,
		},
		{"channels", channelSheet(7, filled[[]status.Detail](), as), ""},
		{"status", statusSheet(new(filled[status.Now]()), as), ""},
		{"lanes", laneSheet(new(filled[status.Now]())), formatTable},
		{"route", routeTable(&daily, &daily.Routes[0], daily.Rows), formatTable},
		{"preview", previewSheet(new(filled[report.Preview]()), as), ""},
		{"traffic", trafficSheet(new(filled[report.Traffic]()), as), ""},
		{"changes", changeSheet(filled[[]control.Line](), as), ""},
		{"weights", weightSheet(&before, &after), formatTable},
		{"history", historySheet(filled[[]control.HistoryLine](), as), ""},
		{"ramps", rampSheet(filled[[]control.Ramp](), as), ""},
		{"plan", planSheet(&started, as), ""},
		{"ramp moves", rampMoveSheet(filled[[]control.Ramp]()), formatTable},
		{"limit rows", limitSheet(&now, formatCSV), formatCSV},
		{"limits", limitSheet(&now, formatTable), formatTable},
		{"limits of channels", channelLimitSheet(&now), formatTable},
		{"waiters", waiterSheet(&now), formatTable},
		{"limit move rows", limitMoveSheet(filled[[]limitMove](), formatCSV), formatCSV},
		{"limit moves", limitMoveSheet(filled[[]limitMove](), formatTable), formatTable},
		{"candidates", candidateSheet(filled[[]report.Candidate](), as), ""},
		{"plain candidates", candidateSheet([]report.Candidate{{Channel: "a"}}, as), ""},
		{"attempts", attemptSheet(filled[[]report.Attempt]()), formatTable},
		{"demo", demoSheet(new(filled[demo.Result]()), as), ""},
		{"bench", benchSheet(new(filled[bench.Result]())), ""},
		{"codes", codesSheet(new(filled[bench.CodesResult]())), ""},
		{"faults", faultsSheet(new(filled[bench.FaultsResult]()), as), ""},
		{"simulation", simulationSheet(filled[[]simulate.Outcome](), as), ""},
		{"counts", countSheet(filled[[]sandbox.Count](), as), ""},
		{"opt-outs", optOutHistory(filled[[]control.OptOut](), as), ""},
		{"keys", new(filled[keyRing]()).sheet(as), ""},
		{"verification", verificationSheet(&verification, as), ""},
		{"invariants", invariantSheet(&invariants, formatTable), formatTable},
		{"violations", violationSheet(&invariants, as), ""},
		{"left", leftSheet(settle.Left, as), ""},
	}
}

// filled returns a value whose exported fields are all different; slices and maps have two
// elements.
func filled[T any]() (value T) {
	n := 0
	fill(reflect.ValueOf(&value).Elem(), &n)
	return value
}

func fill(v reflect.Value, n *int) {
	*n++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_795_000_000+int64(*n)*61, 0).UTC()))
		return
	}
	if v.Type() == reflect.TypeFor[status.Quantity]() {
		v.Set(reflect.ValueOf(status.Quantity{Units: int64(*n) * 1000, Money: *n%2 == 0}))
		return
	}
	switch v.Kind() { //nolint:exhaustive // No printed value has another kind.
	case reflect.String:
		v.SetString(strings.Repeat("w", *n%3) + "-" + number(int64(*n)))
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16:
		v.SetInt(int64(*n))
	case reflect.Uint64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 64)
	case reflect.Bool:
		v.SetBool(*n%2 == 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(element, n)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i), n)
			}
		}
	}
}
