// Package clients tests docs/clients.md and docs/schema with the libraries that services use: real
// Kafka clients and JSON Schema validators, installed from their registries into bin/clients.
// Section clients of .ci/run runs it; "./..." leaves it out, because it needs Python, Node, Java
// and kcat.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

// timeout bounds each step that takes a moment on an idle machine.
const timeout = 10 * time.Minute

// program is how a program of the guide is started.
type program struct {
	name      string
	command   []string
	variables []string
}

// programs installs all libraries.
func programs(t *testing.T) []program {
	t.Helper()
	folder := t.TempDir()
	writePrograms(t, folder)
	in := func(name string) string { return filepath.Join(folder, name) }
	return []program{
		{name: "franz-go", command: []string{goProgram(t, in("follow.go"))}},
		{name: "confluent-kafka", command: []string{python(t), in("follow_confluent.py")}},
		{name: "kafka-python", command: []string{python(t), in("follow_kafka_python.py")}},
		{
			name: "kafkajs", command: []string{"node", in("follow_kafkajs.js")},
			variables: []string{"NODE_PATH=" + filepath.Join(node(t), "node_modules")},
		},
		{name: "java", command: []string{"java", "-cp", java(t) + "/*", in("Follow.java")}},
		{name: "kcat", command: []string{"bash", in("follow_kcat.sh")}},
	}
}

// TestEveryClientOfTheGuidePublishesAndFollows runs the programs as they stand in the guide. Before
// them comes a file of messages, so that sms.status has batches that are large enough to be
// compressed.
func TestEveryClientOfTheGuidePublishesAndFollows(t *testing.T) {
	all := programs(t)
	for name, start := range map[string]func(*testing.T) string{"embedded": startEmbedded, "apache": startApache} {
		t.Run(name, func(t *testing.T) {
			brokers := start(t)
			checkCompressed(t, brokers)
			for _, p := range all {
				t.Run(p.name, func(t *testing.T) {
					id := "clients-" + name + "-" + p.name
					out, err := try(t, timeout, append(p.variables, "KAFKA_BROKERS="+brokers), p.command[0], append(p.command[1:], id)...)
					if err != nil {
						t.Fatal(err)
					}
					if !regexp.MustCompile(`(?m)^` + id + ` \d+ (accepted|delivered) *\n\z`).MatchString(out) {
						t.Errorf("it printed\n%s", out)
					}
				})
			}
		})
	}
}

// startEmbedded runs the dispatcher with servers of its own and returns the address of its Kafka.
func startEmbedded(t *testing.T) string {
	t.Helper()
	folder := openFolder(t)
	settings := []string{"DISPATCHER_DATA_DIR=" + folder, "DISPATCHER_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0"}
	serve(t, settings, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	raw, err := os.ReadFile(filepath.Join(folder, "endpoints.json"))
	if err != nil {
		t.Fatal(err)
	}
	var endpoints struct {
		Brokers []string `json:"kafka_brokers"`
	}
	if err := json.Unmarshal(raw, &endpoints); err != nil {
		t.Fatal(err)
	}
	sendFile(t, settings)
	return strings.Join(endpoints.Brokers, ",")
}

// startApache runs a broker of Apache Kafka, and the dispatcher with a database of the tests.
func startApache(t *testing.T) string {
	t.Helper()
	folder, script := t.TempDir(), absolute(t, "../kafka/kafka.sh")
	if err := os.Symlink(filepath.Join(kafka(t), "libs"), filepath.Join(folder, "libs")); err != nil {
		t.Fatal(err)
	}
	port := tier.FreePort(t) // the controller uses the next one
	run(t, script, "start", folder, fmt.Sprint(port))
	t.Cleanup(func() {
		if out, err := exec.Command(script, "kill", folder).CombinedOutput(); err != nil {
			t.Errorf("stop the broker: %v\n%s", err, out)
		}
	})
	brokers := fmt.Sprintf("127.0.0.1:%d", port)
	write(t, filepath.Join(folder, "routing.yaml"), "channels:\n  a: {provider: sandbox}\nroutes:\n  - {name: default, match: {}, weights: {a: 1}}\n")
	write(t, filepath.Join(folder, "draw.key"), strings.Repeat("5d", 32)+"\n")
	settings := []string{
		"DISPATCHER_KAFKA_BROKERS=" + brokers, "DISPATCHER_POSTGRES_URL=" + ledgertest.Empty(t),
		"DISPATCHER_ROUTING_FILE=" + filepath.Join(folder, "routing.yaml"), "DISPATCHER_DRAW_KEY_FILE=" + filepath.Join(folder, "draw.key"),
		"DISPATCHER_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
	}
	if _, err := try(t, timeout, settings, dispatcher(t), "topics", "create", "--partitions", "3", "--replication-factor", "1"); err != nil {
		t.Fatal(err)
	}
	serve(t, settings, "run")
	sendFile(t, settings)
	return brokers
}

// sendFile publishes messages in one go.
func sendFile(t *testing.T, settings []string) {
	t.Helper()
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, `{"id":"before-%d","to":"+447700900123","text":"Your parcel arrives tomorrow."}`+"\n", i)
	}
	file := filepath.Join(t.TempDir(), "messages.jsonl")
	write(t, file, lines.String())
	if _, err := try(t, timeout, settings, dispatcher(t), "send", "--file", file); err != nil {
		t.Fatal(err)
	}
}

// checkCompressed waits until sms.status has the events of the file, and expects a compressed batch
// among them: without one this test would say nothing about compression.
func checkCompressed(t *testing.T, brokers string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ConsumeTopics("sms.status"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	accepted, compressed := map[string]bool{}, 0
	for len(accepted) < 500 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of 500 messages were accepted: %v", len(accepted), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Attrs.CompressionType() != 0 {
				compressed++
			}
			if bytes.Contains(r.Value, []byte(`"state":"accepted"`)) {
				accepted[string(r.Key)] = true
			}
		})
	}
	if compressed == 0 {
		t.Error("no event lies in a compressed batch")
	}
}

// built is the program under test.
var built once

func dispatcher(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		file := absolute(t, root+"/bin/clients/dispatcher")
		run(t, "go", "build", "-o", file, "../../cmd/dispatcher")
		built.folder = file
	})
	return built.folder
}

// serve runs the dispatcher until the end of the test and returns when it is ready.
func serve(t *testing.T, settings []string, args ...string) {
	t.Helper()
	log := &notes{}
	cmd := exec.Command(dispatcher(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), settings...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // a process that has ended is reported below
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the dispatcher ended with %v:\n%s", err, log)
			}
		case <-time.After(timeout):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Errorf("the dispatcher did not end: %v\n%s", <-ended, log)
		}
	})
	deadline := time.Now().Add(timeout)
	for !strings.Contains(log.String(), "dispatcher is running") {
		if time.Now().After(deadline) {
			t.Fatalf("the dispatcher is not ready:\n%s", log)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the dispatcher ended with %v:\n%s", err, log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// notes collects what a process prints.
type notes struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// openFolder makes a folder that the user of a private PostgreSQL may enter, with a path short
// enough for a socket.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "clients-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}
