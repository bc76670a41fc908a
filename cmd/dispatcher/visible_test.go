package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// controlText is stored text that acts on a terminal: colours, a bell, an 8-bit control sequence, a
// change of direction, zero-width characters, and a character beyond the first plane.
const controlText = "=ann\x1b[31m\a\u009b2J\u202eevil\u200b\ufeff\U000e0041\x7f"

// firstControl returns the first character of an output that could act on a terminal.
func firstControl(out string) (found rune, is bool) {
	for _, r := range out {
		if r != '\n' && r != '\t' &&
			(r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return r, true
		}
	}
	return 0, false
}

// TestWhatCommandsPrintShowsControlCharactersEscaped: each command that prints stored text, in each
// format. JSON has the text unchanged.
func TestWhatCommandsPrintShowsControlCharactersEscaped(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	ambiguousMessages(t, l, "open-1", "final-1")
	env := []string{
		"DISPATCHER_POSTGRES_URL=" + url,
		"DISPATCHER_DRAW_KEY_FILE=" + write(t, "draw.key", strings.Repeat("a1", 32)),
	}
	for _, args := range [][]string{
		{
			"optouts", "add", "+447700900123", "--tenant", controlText, "--author", controlText, "--reason",
			controlText,
		},
		{
			"limits", "set", "a", "--window", "1s", "--max", "5", "--author", controlText, "--reason",
			controlText,
		},
	} {
		if got := dispatcher(t, "", env, args...); got.code != exitOK {
			t.Fatalf("%q: got %+v, want exit code %d", args, got, exitOK)
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The test is over.
	for _, sql := range []string{
		`
			update dispatcher.attempts set provider_code = $1, provider_reference = $1,
			contradicted_at = case when message_seq = 1 then now() end`,
		`update dispatcher.messages set tenant = $1, reason = $1`,
		`update dispatcher.ambiguous set author = $1, note = $1`,
		`update dispatcher.routing_versions set author = $1, reason = $1`,
	} {
		if _, err := conn.Exec(t.Context(), sql, controlText); err != nil {
			t.Fatalf("%s: got error %v", sql, err)
		}
	}
	for name, args := range map[string][]string{
		"explain": {"explain", "open-1"}, "ambiguous": {
			"ambiguous", "list", "--all",
		}, "history": {"routing", "history"},
		"show": {"routing", "show"}, "limits": {"limits", "show"},
		"limits history": {"limits", "history", "a"}, "optouts": {"optouts", "list"},
		"optouts show": {
			"optouts", "show", "+447700900123", "--tenant", controlText,
		}, "channels": {"channel", "list"}, "weights": {"weights", "show"},
		"no such message": {"explain", controlText}, "no such command": {controlText},
	} {
		for _, as := range []string{formatTable, formatCSV, formatJSON} {
			t.Run(name+" "+as, func(t *testing.T) {
				t.Parallel()
				got := dispatcher(t, "", env, append(args, "--format", as)...)
				if got.code == exitUsage && !strings.HasPrefix(name, "no such") {
					t.Fatalf("got %+v", got)
				}
				if r, is := firstControl(got.out + got.err); is {
					t.Errorf("%U is in\n%q", r, got.out+got.err)
				}
				if as == formatJSON && got.code == exitOK && !json.Valid([]byte(got.out)) {
					t.Errorf("no JSON: %s", got.out)
				}
				if as == formatCSV && got.code == exitOK {
					checkNoFormula(t, got.out)
				}
				if name == "history" && as == formatJSON && !jsonHolds(t, got.out, controlText) {
					t.Errorf("another reason in %s", got.out)
				}
			})
		}
	}
}

// checkNoFormula reads a CSV, or each line of other output, as a spreadsheet would.
func checkNoFormula(t *testing.T, out string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, row := range rows {
		for _, field := range row {
			if field != "" && strings.ContainsAny(field[:1], "=+-@\t\r") &&
				!plainNumber.MatchString(field) {
				t.Errorf("%q is a formula", field)
			}
		}
	}
}

// jsonHolds reports whether a text occurs in a JSON document.
func jsonHolds(t *testing.T, document, text string) bool {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if token == text {
			return true
		}
	}
}

// TestVisibleTextIsTheSameInPieces: however the text is split into writes, every control character
// is escaped, and JSON keeps its meaning.
func TestVisibleTextIsTheSameInPieces(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text") + controlText
		document, err := json.Marshal(text)
		if err != nil {
			rt.Fatal(err)
		}
		for _, given := range []string{
			text, string(document), text + string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")),
		} {
			var out bytes.Buffer
			w := showing(&out)
			for rest := []byte(given); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
				if _, err := w.Write(rest[:n]); err != nil {
					rt.Fatal(err)
				}
				rest = rest[n:]
			}
			w.finish()
			if out.String() != visible(given) {
				rt.Fatalf("%q: got %q in pieces, %q whole", given, out.String(), visible(given))
			}
			if strings.ContainsFunc(out.String(), hidden) {
				rt.Fatalf("got %q", out.String())
			}
			if given == string(document) {
				var back string
				if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
					rt.Fatalf("%q was read back as %q, %v", text, back, err)
				}
			}
		}
	})
}

// TestNoFieldOfACSVIsAFormula: a field is unchanged, or has a single quote in front. Numbers stay
// numbers.
func TestNoFieldOfACSVIsAFormula(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"": "", "a=1": "a=1", "-0.25": "-0.25", "+5": "+5", "-1e-7": "-1e-7", "-": "'-",
		"-1+1": "'-1+1", "=1+1": "'=1+1", "+1+1": "'+1+1",
		"@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "-5 USD": "'-5 USD",
		"--5": "'--5", "+.5": "'+.5",
	} {
		if got := inert(field); got != want {
			t.Errorf("%q: got %q, want %q", field, got, want)
		}
	}
	beginnings := rapid.SampledFrom([]string{"", "=", "+", "-", "@", "\t", "\r", "5", "-5"})
	tier.Check(t, func(rt *rapid.T) {
		row := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return beginnings.Draw(rt, "beginning") +
				rapid.StringMatching(`[a-z0-9 ,"=.]{0,8}`).Draw(rt, "rest")
		}), 2, 6).Draw(rt, "row")
		var out bytes.Buffer
		if err := writeCSV(&out, row); err != nil {
			rt.Fatal(err)
		}
		back, err := csv.NewReader(&out).Read()
		if err != nil || len(back) != len(row) {
			rt.Fatalf("got %v, error %v", back, err)
		}
		for i, field := range back {
			if strings.TrimPrefix(field, "'") != row[i] {
				rt.Fatalf("%q was read back as %q", row[i], field)
			}
			if field != "" && strings.ContainsAny(field[:1], "=+-@\t\r") &&
				!plainNumber.MatchString(field) {
				rt.Fatalf("%q is a formula", field)
			}
		}
	})
}

// TestCommandsWriteCSVInOneWay: commands write CSV, and standard output, only through cli, which
// escapes control characters and formulas.
func TestCommandsWriteCSVInOneWay(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		source, err := os.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		found++
		if strings.Contains(string(source), "csv.NewWriter") && e.Name() != "print.go" {
			t.Errorf("%s writes CSV without writeCSV, which escapes formulas", e.Name())
		}
		if strings.Contains(string(source), "os.Stdout") && e.Name() != "main.go" {
			t.Errorf("%s writes to standard output by itself: cli.out shows control characters "+
				"escaped",
				e.Name())
		}
	}
	if found < 50 {
		t.Errorf("%d files were checked", found)
	}
}
