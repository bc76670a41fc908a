package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// result is the output and the exit code of a command.
type result struct {
	code     int
	out, err string
}

// dispatcher runs a command with these variables. It runs in this process, unless the command
// starts processes or lists its environment.
func dispatcher(t testing.TB, stdin string, env []string, args ...string) result {
	t.Helper()
	alone := []string{"run", "demo", "bench", "sandbox", "config"}
	if len(args) > 0 && slices.Contains(alone, args[0]) || len(args) == 0 ||
		slices.ContainsFunc(env, func(v string) bool { return !strings.HasPrefix(v, "DISPATCHER_") }) {
		return apart(t, stdin, env, args...)
	}
	var out, errs bytes.Buffer
	code := execute(t.Context(), &cli{
		in: strings.NewReader(stdin), out: &out, err: &errs, env: env, load: settingsOf(t, env),
		open: keptOpen.opener(t),
	}, args)
	return result{code, out.String(), errs.String()}
}

// fewCollections is for processes that end soon: a third of the time of their start goes into
// collecting garbage.
const fewCollections = "GOGC=400"

// apart runs a command in a separate process.
func apart(t testing.TB, stdin string, env []string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = t.TempDir() // a ./data of a running dispatcher is not found
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	environment.Lock()
	cmd.Env = append(append(os.Environ(), env...), runAsProgram+"=1", fewCollections)
	environment.Unlock()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// environment is locked while settings are read, because parallel tests share the environment of
// the process.
var environment sync.Mutex

// settingsOf reads settings from these variables only. The data folder is one in which no
// dispatcher runs.
func settingsOf(t testing.TB, env []string) func() (config.Settings, error) {
	return func() (config.Settings, error) {
		environment.Lock()
		defer environment.Unlock()
		for _, v := range append([]string{"DISPATCHER_DATA_DIR=" + t.TempDir()}, env...) {
			name, value, _ := strings.Cut(v, "=")
			if err := os.Setenv(name, value); err != nil { //nolint:usetesting // for this moment alone
				return config.Settings{}, err
			}
			defer os.Unsetenv(name) //nolint:errcheck // It has just been set.
		}
		return config.Load()
	}
}

// write creates a file in a temporary folder and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// testRouting has one route over three channels, and topics other than the default ones.
const testRouting = `timezone: Europe/London
channels:
  a: {provider: sandbox, capacity: 100, price: {currency: GBP, default: "0.031"}}
  b: {provider: sandbox, capacity: 100, price: {currency: GBP, default: "0.035"}}
  c: {provider: sandbox, capacity: 100, price: {currency: GBP, default: "0.028"}}
routes:
  - {name: default, match: {}, weights: {a: 25, b: 15, c: 60}}
lanes:
  otp: {topics: [codes]}
  transactional: {topics: [orders, receipts]}
`

// broker starts a Kafka with these topics and returns its setting.
func broker(t *testing.T, topics ...string) (setting, address string) {
	t.Helper()
	k, err := embedded.StartKafka(t.Context(),
		embedded.KafkaConfig{Folder: t.TempDir(), Topics: topics, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return "DISPATCHER_KAFKA_BROKERS=" + k.Address(), k.Address()
}

// published reads n records from a topic.
func published(t *testing.T, address, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out []*kgo.Record
	for len(out) < n {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		out = append(out, fetches.Records()...)
	}
	return out
}

// openSeeded opens a ledger as a registered instance, with testRouting in force.
func openSeeded(t *testing.T, url string) *ledger.Ledger {
	t.Helper()
	tier.OneWindow(t, 24*time.Hour)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: url, Region: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: testRouting, Channels: []ledger.ChannelSpec{
			{Name: "a"}, {Name: "b"}, {Name: "c"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// claimed stores messages with an attempt on the first choice of each.
func claimed(t *testing.T, l *ledger.Ledger, messages ...ledger.Message) []ledger.Message {
	t.Helper()
	tx, err := l.Claims.Lock(t.Context(),
		ledger.Claim{Messages: messages, Channels: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
	for i := range seen.Messages {
		d.Each[i] = toFirstChoice(seen, &seen.Messages[i])
	}
	if err := tx.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return seen.Messages
}

func toFirstChoice(seen *ledger.Seen, m *ledger.Message) ledger.Decision {
	at := slices.IndexFunc(seen.Channels, func(c ledger.ChannelState) bool {
		return c.Name == m.Plan.FirstChoice
	})
	seen.Channels[at].Gate.Active.Count++
	return ledger.Decision{State: ledger.Sending, Plan: m.Plan, Attempt: ledger.Attempt{
		Number: 1, Channel: m.Plan.FirstChoice, Reason: ledger.ByFirstChoice, Segments: 1,
		PriceMicros: 28_000, Currency: "GBP",
	}}
}

// TestWarningsOfACSVGoToStandardError: standard output holds the rows only.
func TestWarningsOfACSVGoToStandardError(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	for _, channel := range []string{"a", "b"} {
		got := dispatcher(t, "", env,
			withReason("all", "channel", "drain", channel, "--format", "csv")...)
		if got.code != exitOK || got.err != "" {
			t.Errorf("got %+v, want exit code %d and nothing on standard error", got, exitOK)
		}
	}
	got := dispatcher(t, "", env, withReason("all", "channel", "drain", "c", "--format", "csv")...)
	if got.code != exitOK || !strings.Contains(got.err, "Route default has no channel left") ||
		got.out != "what,from,to\nchannels.c.state,enabled,draining\n" {
		t.Errorf("got %+v, want exit code %d, %q in the error and the output %q",
			got, exitOK, "Route default has no channel left",
			"what,from,to\nchannels.c.state,enabled,draining\n")
	}
	ramp := dispatcher(t, "", env,
		withReason("slowly", "weights", "ramp", "default", "a=40", "--steps", "1",
			"--format", "csv")...)
	if ramp.code != exitOK || !strings.HasPrefix(ramp.out, "ramp,step,at,a\n1,0,now,25\n1,1,") ||
		!strings.Contains(ramp.err, "Ramp 1 of route default") {
		t.Errorf("got %+v, want exit code %d, output that begins with %q and %q in the error",
			ramp, exitOK, "ramp,step,at,a\n1,0,now,25\n1,1,", "Ramp 1 of route default")
	}
	none := dispatcher(t, "", env, withReason("back", "channel", "enable", "c", "--format", "json")...)
	if !strings.Contains(none.out, `"warnings": []`) {
		t.Errorf("got %+v, want %q in the output", none, `"warnings": []`)
	}
}

// TestWrongArgumentsAreAnsweredWithTheUsageLine: the error is the usage line and one sentence of
// ours, not one of cobra.
func TestWrongArgumentsAreAnsweredWithTheUsageLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"name what to do: invariants, key, proof, verify": {"audit"},
		"name what to do: apply, diff, history":           {"routing"},
		"an argument is missing\nUsage: disp":             {"routing", "apply"},
		`an argument is missing behind "default"`:         {"weights", "set", "default"},
		`"c" is one argument too many`:                    {"routing", "diff", "a", "b", "c"},
		"that is not a version: write a number": {
			"channel", "drain", "a", "--expect-version", "abc",
		},
		"that is not a time span: write": {
			"weights", "ramp", "default", "--over", "later",
		},
		"Usage: dispatcher weights ramp ROUTE": {"weights", "ramp", "default", "--over", "-1h"},
		"exclude each other: name one": {
			"weights", "ramp", "default", "--hold", "--cancel",
		},
	} {
		got := dispatcher(t, "", nil, args...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	help := dispatcher(t, "", nil, "help", "channel", "drain").out
	if strings.Contains(help, "(default )") || strings.Contains(help, "default: no check") {
		t.Error(help)
	}
}

// loginOf is the login of the database that a URL leads to.
func loginOf(t *testing.T, url string) (login string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // It was read.
	if err := db.QueryRow(t.Context(), "select session_user").Scan(&login); err != nil {
		t.Fatal(err)
	}
	return login
}
