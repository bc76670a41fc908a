package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
)

// TestRunEmbeddedFollowsAMessageUntilItIsDelivered: the first message of a newcomer ends as the
// README says, settings without effect are named, and Ctrl-C ends it all with 130.
func TestRunEmbeddedFollowsAMessageUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	folder := openFolder(t)
	data := filepath.Join(folder, "data")
	p := launch(t, "dispatcher", folder, map[string]string{
		"DATA_DIR": data, "LISTEN": "127.0.0.1:0", "RECEIPTS_LISTEN": "127.0.0.1:0",
		"POSTGRES_URL": "postgres://elsewhere/x",
	}, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	p.says(t, "dispatcher is running")
	send := launch(t, "send", folder, map[string]string{"DATA_DIR": data}, "send",
		"--to", "+447700900123", "--text", "Hello", "--id", "first")
	if code := send.wait(t, stepTimeout); code != exitOK {
		t.Fatalf("send ended with %d: %s", code, send.out)
	}
	endpoints, _ := embedded.ReadEndpoints(data)
	eventually(t, stepTimeout, "it is delivered", func() bool {
		return queryOne[int64](t, endpoints.PostgresURL,
			`select count(*) from audit.messages where id = 'first' and state = 'delivered'`) == 1
	})
	p.signal(t, syscall.SIGINT)
	if code := p.wait(t, stepTimeout); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	printed := p.out.String()
	if !strings.Contains(printed, "DISPATCHER_POSTGRES_URL") ||
		strings.Contains(printed, "DISPATCHER_KAFKA_BROKERS") {
		t.Errorf("it printed:\n%s", printed)
	}
}

// TestEndpointsOfAKilledProcessAreNotTakenForAWrongURL: a "run --embedded" that was killed leaves
// the file behind through which commands find its servers.
func TestEndpointsOfAKilledProcessAreNotTakenForAWrongURL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	raw, err := json.Marshal(embedded.Endpoints{
		KafkaBrokers: []string{"127.0.0.1:1"}, PostgresURL: "postgres://u:hush@127.0.0.1:1/x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, config.EmbeddedEndpoints), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", "daily"}, {"send", "--to", "+447700900123", "--text", "x"},
	} {
		got := dispatcher(t, "", []string{"DISPATCHER_DATA_DIR=" + data}, args...)
		if got.code != exitUsage || !strings.Contains(got.err, "was left by a") ||
			!strings.Contains(got.err, config.EmbeddedEndpoints) ||
			strings.Contains(got.err, "hush") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	got := dispatcher(t, "",
		[]string{
			"DISPATCHER_DATA_DIR=" + data, "DISPATCHER_POSTGRES_URL=postgres://u@127.0.0.1:2/x",
		},
		"report", "daily")
	if got.code != exitUsage ||
		!strings.Contains(got.err, "127.0.0.1:2 of DISPATCHER_POSTGRES_URL") {
		t.Errorf("%+v", got)
	}
}

func TestSettingsThatEmbeddedIgnoresAreNamed(t *testing.T) {
	t.Parallel()
	s := config.Settings{KafkaTLS: true, KafkaBrokers: []string{"k:9092"}, DrawKeyFile: "draw.key"}
	want := "DISPATCHER_KAFKA_BROKERS DISPATCHER_KAFKA_TLS DISPATCHER_DRAW_KEY_FILE"
	if got := strings.Join(ignoredWhenEmbedded(&s), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ignoredWhenEmbedded(&config.Settings{}); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
