package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/demo"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
)

// openFolder creates a folder that the user of a private PostgreSQL may enter, with a path short
// enough for a Unix socket. It is removed at the end of the test.
func openFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "e2e-") //nolint:usetesting // See above.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// processesOf lists the command lines of processes that name a folder, if the system shows them.
func processesOf(t testing.TB, folder string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil && bytes.Contains(raw, []byte(folder)) {
			lines = append(lines, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return lines
}

// TestDemoShowsTheMainJob: one command without any setup shows the agreed shares and leaves nothing
// behind.
func TestDemoShowsTheMainJob(t *testing.T) {
	t.Parallel()
	n := tier.Size(300, 15_000)
	folder, temporary := openFolder(t), openFolder(t)
	p := launchWith(t, "demo", folder, temporary, nil, "demo", "--messages", strconv.Itoa(n),
		"--seed", "1", "--format", "json")
	if code := p.wait(t, 2*stepTimeout); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, p.out)
	}
	_, document, _ := strings.Cut(p.out.String(), "{")
	var r demo.Result
	if err := json.Unmarshal([]byte("{"+document), &r); err != nil {
		t.Fatalf("%v:\n%s", err, p.out)
	}
	if r.Messages != n || r.Accepted != int64(n) || r.DuplicatesSent != 0 || r.Unknown != 0 ||
		len(r.Channels) != 3 {
		t.Errorf("result %+v", r)
	}
	// The draw key is new each time. Fair draws have a p-value below 1e-3 once in a thousand runs, and
	// below 1e-6 once in a million.
	if r.ChiSquareP < 1e-6 {
		t.Errorf("the draws are %s, p = %g", r.DrawsVerdict, r.ChiSquareP)
	}
	fallbacks := int64(0)
	for _, c := range r.Channels {
		fallbacks += c.Fallback
	}
	if r.DrawsVerdict == report.Fair && fallbacks == 0 && r.Verdict != report.Kept {
		t.Errorf("without a fallback the traffic is %s: %s", r.Verdict, r.Text)
	}
	checkNothingLeft(t, folder, temporary)
}

// TestInterruptedDemoLeavesNothing: Ctrl-C or SIGTERM at any moment ends the demo within seconds,
// and everything that it started.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moment string
		signal syscall.Signal
		code   int
	}{
		"at once": {
			"starting a private PostgreSQL and Kafka", syscall.SIGINT, exitInterrupted,
		},
		"while it wires": {
			"starting the dispatcher and three sandbox carriers", syscall.SIGINT, exitInterrupted,
		},
		"in mid-stream": {
			"publishing to Kafka and sending", syscall.SIGINT, exitInterrupted,
		},
		"told to end by others": {
			"publishing to Kafka and sending", syscall.SIGTERM, exitTerminated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "in mid-stream" {
				tier.LongOnly(t)
			}
			t.Parallel()
			folder, temporary := openFolder(t), openFolder(t)
			p := launchWith(t, "demo", folder, temporary, nil, "demo", "--messages", "200000")
			p.awaitOutput(t, c.moment)
			await(t.Context(), 150*time.Millisecond)
			p.signal(t, c.signal)
			interrupted := time.Now()
			if code := p.wait(t, stepTimeout); code != c.code {
				t.Errorf("exit code %d", code)
			}
			t.Logf("ended after %s", time.Since(interrupted).Round(time.Millisecond))
			if !strings.HasSuffix(p.out.String(),
				"dispatcher: interrupted; everything was stopped in order\n") {
				t.Errorf("it printed:\n%s", p.out)
			}
			checkNothingLeft(t, folder, temporary)
		})
	}
}

// checkNothingLeft expects no file and no process of the demo.
func checkNothingLeft(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		left, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range left {
			t.Errorf("%s was left in %s", entry.Name(), folder)
		}
		for _, line := range processesOf(t, folder) {
			t.Errorf("still running: %s", line)
		}
	}
}

// TestInterruptedDemoGoesOnWithRunEmbedded: what an interrupted demo with --keep had accepted is
// finished by "run --embedded", and nothing is sent twice.
func TestInterruptedDemoGoesOnWithRunEmbedded(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	folder := openFolder(t)
	settings := map[string]string{
		"DATA_DIR": filepath.Join(folder, "data"), "LISTEN": "127.0.0.1:0",
		"RECEIPTS_LISTEN": "127.0.0.1:0", "SHUTDOWN_TIMEOUT": patientStop,
	}
	ports := []string{"--kafka-port", "0", "--postgres-port", "0"}
	p := launch(t, "demo", folder, settings,
		append([]string{"demo", "--keep", "--messages", strconv.Itoa(30_000)}, ports...)...)
	p.awaitOutput(t, "publishing to Kafka and sending")
	await(t.Context(), 500*time.Millisecond)
	p.signal(t, syscall.SIGINT)
	p.wait(t, stepTimeout)

	p = launch(t, "run --embedded", folder, settings,
		append([]string{"run", "--embedded"}, ports...)...)
	p.awaitOutput(t, "dispatcher is running")
	ends, ok := embedded.ReadEndpoints(settings["DATA_DIR"])
	if !ok {
		t.Fatal("the running process has no file with its endpoints")
	}
	s := &stage{
		t: t, kafka: ends.KafkaBrokers[0], postgres: ends.PostgresURL, prefix: "dispatcher",
		folder: folder,
	}
	s.client = kafkaClient(t, s.kafka)
	published := map[string]bool{}
	for _, lane := range []string{"otp", "transactional", "bulk"} {
		s.readAll("sms."+lane, func(r *kgo.Record) { published[string(r.Key)] = true })
	}
	s.settled(len(published))
	t.Logf("%d messages were accepted before the interruption", len(published))

	states := s.states()
	for id := range published {
		if states[id] != "accepted" {
			t.Errorf("message %s is %q", id, states[id])
		}
	}
	n := s.count(`
		select count(*) from (select from audit.attempts where outcome in ('accepted', 'unknown')
		group by message_id having count(*) > 1) x`)
	if n > 0 {
		t.Errorf("%d messages were sent twice", n)
	}
	p.stop(t)
	for _, line := range processesOf(t, folder) {
		t.Errorf("still running: %s", line)
	}
}
