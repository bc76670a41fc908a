package main

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dispatcher/config/tier"
)

// mistake is a wrong setting or document.
type mistake struct {
	name    string
	setting map[string]string // replaces the right ones; "-" removes one
	routing func(right string) string
	names   []string // what the error must name
}

func mistakes(taken string) []mistake {
	replace := func(old, with string) func(string) string {
		return func(right string) string { return strings.Replace(right, old, with, 1) }
	}
	return []mistake{
		{
			name: "unknown setting", setting: map[string]string{"KAFKA_BROKER": "127.0.0.1:9092"},
			names: []string{"DISPATCHER_KAFKA_BROKER", "DISPATCHER_KAFKA_BROKERS"},
		},
		{
			name: "missing setting", setting: map[string]string{"POSTGRES_URL": "-"},
			names: []string{"DISPATCHER_POSTGRES_URL", "postgres://"},
		},
		{
			name: "unreadable setting", setting: map[string]string{"SEND_TIMEOUT": "soon"},
			names: []string{"DISPATCHER_SEND_TIMEOUT", "10s"},
		},
		{
			name: "unknown log level", setting: map[string]string{"LOG_LEVEL": "loud"},
			names: []string{"DISPATCHER_LOG_LEVEL", "debug"},
		},
		{
			name:    "missing routing file",
			setting: map[string]string{"ROUTING_FILE": "elsewhere.yaml"},
			names:   []string{"DISPATCHER_ROUTING_FILE", "elsewhere.yaml", "correct the path"},
		},
		{
			name: "missing key file", setting: map[string]string{"DRAW_KEY_FILE": "elsewhere.key"},
			names: []string{"DISPATCHER_DRAW_KEY_FILE", "elsewhere.key", "correct the path"},
		},
		{
			name: "unknown routing key", routing: replace("timezone:", "timezones:"),
			names: []string{"routing.yaml:1", "timezones", "timezone"},
		},
		{
			name:    "unknown channel key",
			routing: replace("provider: smpp", "provider: smpp, capacities: 5"),
			names:   []string{"routing.yaml:3", "channels.a", "capacities", "capacity"},
		},
		{
			name: "negative weight", routing: replace("a: 25", "a: -25"),
			names: []string{"routing.yaml:7", "routes[0].weights.a", "-25"},
		},
		{
			name: "all weights 0", routing: replace("{a: 25, b: 15, c: 60}", "{a: 0, b: 0, c: 0}"),
			names: []string{"routing.yaml:7", "routes[0].weights", "0"},
		},
		{
			name: "unknown channel", routing: replace("c: 60", "d: 60"),
			names: []string{"routing.yaml:7", `"d"`, "define it under channels"},
		},
		{
			name: "unknown SMPP setting", routing: replace("system_id: e2e", "sistem_id: e2e"),
			names: []string{"routing.yaml", "channels.a.settings", "sistem_id", "system_id"},
		},
		{
			name:    "missing password file",
			routing: replace("system_id: e2e", "system_id: e2e, password_file: a.secret"),
			names:   []string{"routing.yaml", "channels.a.settings", "password_file", "a.secret"},
		},
		{
			name: "not YAML", routing: func(string) string { return "channels: [" },
			names: []string{"routing.yaml"},
		},
		{
			name: "wrong database password", setting: map[string]string{"POSTGRES_URL": "wrong"},
			names: []string{"DISPATCHER_POSTGRES_URL", "password"},
		},
		{
			name:    "unreadable database URL",
			setting: map[string]string{"POSTGRES_URL": "localhost:5432"},
			names:   []string{"DISPATCHER_POSTGRES_URL", "postgres://"},
		},
		{
			name: "port taken", setting: map[string]string{"LISTEN": taken},
			names: []string{"DISPATCHER_LISTEN", taken, "another address"},
		},
	}
}

// TestBadConfigurationIsOneClearSentence: the program exits with code 2 and one sentence that names
// the place and what to do. It never prints a panic, a stack trace or a secret.
func TestBadConfigurationIsOneClearSentence(t *testing.T) {
	t.Parallel()
	occupied, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = occupied.Close() })
	s := newStage(t, stageConfig{})
	for _, m := range mistakes(occupied.Addr().String()) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			folder, settings, routing := t.TempDir(), maps.Clone(s.settings), s.read("routing.yaml")
			if m.routing != nil {
				routing = m.routing(routing)
			}
			settings["DATA_DIR"], settings["SECRETS_DIR"] = t.TempDir(), folder
			settings["ROUTING_FILE"] = filepath.Join(folder, "routing.yaml")
			if err := os.WriteFile(settings["ROUTING_FILE"], []byte(routing), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, value := range m.setting {
				switch value {
				case "-":
					delete(settings, name)
				case "wrong":
					settings[name] = withPassword(t, s.settings["POSTGRES_URL"], "sesame-open")
				default:
					settings[name] = value
				}
			}
			p := launch(t, m.name, folder, settings, "run")
			if code := p.wait(t, stepTimeout); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			checkSentence(t, p.out.String(), m.names)
			if strings.Contains(p.out.String(), "sesame") {
				t.Error("the error shows the password")
			}
		})
	}
}

// checkSentence expects one line of plain text that contains all the names. Log lines may come
// before it.
func checkSentence(t *testing.T, printed string, names []string) {
	t.Helper()
	var sentences []string
	for line := range strings.Lines(printed) {
		if !strings.HasPrefix(line, "{") {
			sentences = append(sentences, strings.TrimSpace(line))
		}
	}
	if len(sentences) != 1 {
		t.Errorf("got %d lines of plain text, want 1:\n%s", len(sentences), printed)
		return
	}
	t.Log(sentences[0])
	if !strings.HasPrefix(sentences[0], "dispatcher: ") {
		t.Errorf("the error does not begin with the program's name: %s", sentences[0])
	}
	for _, name := range names {
		if !strings.Contains(sentences[0], name) {
			t.Errorf("the error does not name %s: %s", name, sentences[0])
		}
	}
}

// TestUnreachableBrokerIsToldAndWaitedFor: the process keeps running, its log says what is wrong,
// and it works as soon as the broker does.
func TestUnreachableBrokerIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	b := &embeddedBroker{t: t, folder: t.TempDir(), port: tier.FreePort(t)}
	b.restart()
	t.Cleanup(b.kill)
	s := newStage(t, stageConfig{kafka: b.address()})
	b.kill()
	p := s.run("dispatcher")
	p.awaitOutput(t, "no Kafka broker answers; check that they run")
	b.restart()
	ids := s.publish("bulk", messages("late", 50))
	s.settled(len(ids))
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	if !p.running() {
		t.Error("the process ended")
	}
}

// TestUnreachableDatabaseIsToldAndWaitedFor: the same for a database that is away at the start.
func TestUnreachableDatabaseIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{})
	right := s.settings["POSTGRES_URL"]
	gate := newGate(t, hostOf(t, right))
	s.settings["POSTGRES_URL"] = withHost(t, right, gate.address)
	p := s.run("dispatcher")
	p.awaitOutput(t, "PostgreSQL (DISPATCHER_POSTGRES_URL) cannot be used yet, trying again")
	gate.open()
	ids := s.publish("bulk", messages("early", 50))
	s.settled(len(ids))
	s.checkAllArrived(ids)
	if !p.running() {
		t.Error("the process ended " + strconv.Itoa(p.pid))
	}
}
