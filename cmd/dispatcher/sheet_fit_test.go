package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
)

// reportSheet is a daily report of large numbers with one column of text.
func reportSheet() sheet {
	share := 0.3333
	row := report.DailyRow{
		Route: "default", Channel: "provider-west", ConfiguredShare: &share, EffectiveShare: &share,
		FirstChoice: 123456, FirstChoiceShare: share, Carried: 123456,
		CarriedShare: share, Delivered: 123456, Segments: 234567, CostMicros: 12345678900,
		Currency: "GBP",
	}
	v := report.RouteVerdict{
		Route: "default", TrafficVerdict: report.Kept, DrawsVerdict: report.Fair,
	}
	return routeTable(&report.Daily{}, &v, []report.DailyRow{row, row})
}

func TestATableFitsItsTerminal(t *testing.T) {
	t.Parallel()
	words := sheet{
		title:  "12 changes",
		header: []string{"version", "author", "reason", "messages held"},
		rows: [][]string{
			{
				"1", "ann@operations.example.net",
				"the reason that somebody wrote down, in a sentence or two, for those who come " +
					"later",
				"123456",
			},
			{"2", "bob", "short", "1"},
		},
		right: []int{1, 4},
	}
	for name, tc := range map[string]struct {
		sheet sheet
		width int
		says  []string // some lines, without trailing blanks
	}{
		"no terminal": {
			words, 0,
			[]string{
				"│       2 │ bob                        │ short" + strings.Repeat(" ", 79) +
					"│             1 │",
			},
		},
		"room": {
			words, 200,
			[]string{
				"│       2 │ bob                        │ short" + strings.Repeat(" ", 79) +
					"│             1 │",
			},
		},
		"80 columns": {words, 80, []string{
			"│ version  author                      reason                         messages │",
			"│       2  bob                         short                                 1 │",
		}},
		"45 columns": {words, 45, []string{"│       2  bob         short              1 │"}},
		"too narrow for a table": {words, 24, []string{
			strings.Repeat("─", 24), "version   1\n",
			"author    ann@operations\n          .example.net\n", "messages  123456\nheld\n",
		}},
		"a report on 120": {reportSheet(), 120, []string{"│ provider-west  33.33 %"}},
		"a report on 80": {
			reportSheet(), 80,
			[]string{
				"channel       provider-west", "first choice  123456",
				"cost          12345.6789 GBP",
			},
		},
	} {
		out := tc.sheet.render(tc.width, false)
		for line := range strings.Lines(out) {
			n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			if tc.width > 0 && n > tc.width {
				t.Errorf("%s: a line of %d in\n%s", name, n, out)
				break
			}
		}
		for _, want := range tc.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out)
			}
		}
	}
}

// TestNoLineIsLongerThanTheTerminal: in no table is a number broken.
func TestNoLineIsLongerThanTheTerminal(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 8).Draw(t, "columns")
		cell := rapid.StringMatching(`([a-zé-]{1,20} ){0,6}[a-z]{0,30}`)
		s := sheet{title: cell.Draw(t, "title"), tight: rapid.Bool().Draw(t, "tight")}
		for i := range columns {
			s.header = append(s.header,
				rapid.StringMatching(`[a-z]{1,9}( [a-z]{1,9})?`).Draw(t, "name"))
			if rapid.Bool().Draw(t, "figures") {
				s.right = append(s.right, i+1)
			}
		}
		figures := map[int]bool{}
		for _, column := range s.right {
			figures[column-1] = true
		}
		var numbers []string
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			row := make([]string, columns)
			for i := range row {
				if row[i] = cell.Draw(t, "cell"); figures[i] {
					row[i] = rapid.StringMatching(`[0-9]{1,9}`).Draw(t, "figure")
					numbers = append(numbers, row[i])
				}
			}
			s.rows = append(s.rows, row)
		}
		width := rapid.IntRange(24, 160).Draw(t, "width")
		out := s.render(width, false)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("a line of %d on %d columns:\n%s", n, width, out)
			}
		}
		for _, number := range numbers {
			if !strings.Contains(out, number) {
				t.Fatalf("%s is missing or broken on %d columns:\n%s", number, width, out)
			}
		}
	})
}

// TestSharesReadAlike: percentages in tables, fractions in CSV.
func TestSharesReadAlike(t *testing.T) {
	t.Parallel()
	part := 0.25
	if got := format(formatTable).share(&part); got != "25.00 %" {
		t.Errorf("a table has %q", got)
	}
	if got := format(formatCSV).share(&part); got != "0.25" {
		t.Errorf("a CSV has %q", got)
	}
	if got := format(formatTable).share(nil); got != "" {
		t.Errorf("none is %q", got)
	}
	_, env := seeded(t)
	for _, args := range [][]string{
		{"weights", "show"}, {"preview", "--routing", write(t, "r.yaml", testRouting)},
	} {
		got := dispatcher(t, "", env, args...)
		if !strings.Contains(got.out, "25.00 %") || !strings.Contains(got.out, "60.00 %") {
			t.Errorf("%v: got %s, want %q in it and %q in it", args, got.out, "25.00 %", "60.00 %")
		}
	}
	if got := dispatcher(t, "", env, "limits", "show"); !strings.Contains(got.out, "100.00 %") {
		t.Error(got.out)
	}
}
