package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config"
)

// firstWrite calls a function with the first write, and keeps everything.
type firstWrite struct {
	bytes.Buffer
	then func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.then != nil {
		w.then()
		w.then = nil
	}
	return n, err
}

// TestSandboxOverwritesNoRoutingDocument: the file may be the operator's.
func TestSandboxOverwritesNoRoutingDocument(t *testing.T) {
	t.Parallel()
	path := write(t, "routing.yaml", "mine\n")
	got := dispatcher(t, "", nil, "sandbox", "--providers", "twilio", "--routing", path,
		"--secrets", t.TempDir(), "--receipts-url", "http://127.0.0.1:1")
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "mine\n" || got.code != exitFailed ||
		!strings.Contains(got.err, "never overwritten") {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// TestSandboxSaysWhereItIsAndWhatItSaw: one line of JSON each, and a usable routing document, which
// is checked as by every command, without reading the secrets.
func TestSandboxSaysWhereItIsAndWhatItSaw(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	routing := filepath.Join(folder, "routing.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	out := &firstWrite{then: cancel}
	c := &cli{out: out, err: io.Discard, load: settingsOf(t, nil)}
	code := execute(ctx, c,
		[]string{
			"sandbox", "--format", "json", "--routing", routing, "--secrets",
			filepath.Join(folder, "secrets"), "--receipts-url", "http://127.0.0.1:1",
		})
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), out)
	}
	var first struct {
		Carriers      []sandbox.Endpoint
		Page, Routing string
	}
	var last struct{ Summary []sandbox.Count }
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[1]), &last); err != nil {
		t.Fatal(err)
	}
	kinds := len(sandbox.Providers())
	if len(first.Carriers) != kinds || len(last.Summary) != kinds || first.Routing != routing ||
		!strings.HasPrefix(first.Page, "http://127.0.0.1:") {
		t.Errorf("got %s", out)
	}
	text, err := os.ReadFile(routing)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := config.ParseRouting(routing, text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := app.CheckChannels(routing, doc, nil); err != nil {
		t.Error(err)
	}
}

func TestSandboxRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`dispatcher: --providers: "pigeon" is none of`: {"--providers", "pigeon"},
		"names none":  {"--providers", ""},
		"there twice": {"--providers", "smpp,smpp"},
		"dispatcher: --reject: 2 is not between 0 and 1\n": {"--reject", "2"},
		"--receipt-delay: cannot be negative":              {"--receipt-delay", "-1s"},
		"--lose and --cut are 1.5 together":                {"--lose", "0.75", "--cut", "0.75"},
		`--listen: ":8090" is not on loopback`:             {"--listen", ":8090"},
		"--early: -1 is not between": {
			"--plan", "../../deploy/sandbox.yaml", "--early", "-1",
		},
		"correct the path": {"--plan", "nowhere.yaml"},
		"exclude each other": {
			"--plan", "../../deploy/sandbox.yaml", "--providers", "smpp",
		},
		"--receipts-url is not an http": {"--receipts-url", "127.0.0.1:8081"},
	} {
		var out, complaints bytes.Buffer
		args = append([]string{"sandbox", "--secrets", t.TempDir()}, args...)
		code := execute(t.Context(), &cli{out: &out, err: &complaints, load: settingsOf(t, nil)}, args)
		if code != exitUsage || !strings.Contains(complaints.String(), want) {
			t.Errorf("%v: exit code %d, %s", args, code, &complaints)
		}
		if strings.Contains(complaints.String(), "carriers.") ||
			strings.Contains(complaints.String(), "profile.") {
			t.Errorf("%v: a flag is wrong, but the error names keys of a plan: %s", args, &complaints)
		}
	}
}

// TestWhatCarriersSawFitsATerminalOf120Columns: also with the figures of a long run. JSON and CSV
// have unshortened words.
func TestWhatCarriersSawFitsATerminalOf120Columns(t *testing.T) {
	t.Parallel()
	const many = 1_234_567
	counts := []sandbox.Count{{
		Channel: "transactional-provider-west-2", Submitted: many, Accepted: many, Rejected: many,
		Refused: many, Throttled: many, Lost: many,
		Delivered: many, Undelivered: many, WithoutWord: many, CallsRefused: many, Unread: many,
	}}
	var out strings.Builder
	countSheet(counts, formatTable).draw(&out)
	atMost120(t, out.String())
	for _, as := range []format{formatTable, formatJSON, formatCSV} {
		c := &cli{out: &out}
		var coded *codedError
		if err := c.sandboxCounts(&sandboxFlags{as: as}, counts); !errors.As(err, &coded) ||
			coded.code != exitFailed {
			t.Errorf("%s: requests could not be read, and the error is %v", as, err)
		}
	}
	header := strings.Join(countSheet(counts, formatCSV).header, ",")
	const want = "channel,submitted,accepted,rejected,refused,throttled,lost,delivered," +
		"undelivered,without_receipt,calls_refused,unread"
	if header != want {
		t.Error(header)
	}
}

// atMost120 reports lines that are wider than a terminal.
func atMost120(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
			t.Errorf("%d columns:\n%s", n, text)
			return
		}
	}
}

// TestTheExampleOfASandboxPlanCanBeRead: the guide also explains every flag of a profile.
func TestTheExampleOfASandboxPlanCanBeRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/sandbox.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.ParsePlan(text, sandbox.Usual()); err != nil {
		t.Error(err)
	}
	guide := document(t, "sandbox.md")
	flags := pflag.NewFlagSet("sandbox", pflag.ContinueOnError)
	(&sandboxFlags{profile: sandbox.Usual()}).add(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		// Shown in the guide, or explained well enough by the help.
		known := map[string]bool{
			"listen": true, "receipts-url": true, "routing": true, "plan": true, "format": true,
		}
		if !known[f.Name] && !strings.Contains(guide, "`--"+f.Name) {
			t.Errorf("docs/sandbox.md does not mention --%s", f.Name)
		}
	})
}
