package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config/tier"
)

// TestTheSandboxWorksWithAnEmbeddedRunAtOnce follows docs/sandbox.md, with no settings but the file
// and the ports: a message is delivered over every kind of provider. The receipts of aws come to
// one address for all messages, which aws confirms first. Other providers get the address with each
// message.
func TestTheSandboxWorksWithAnEmbeddedRunAtOnce(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "trial")
	_, receipts := reserve(t)
	settings := map[string]string{
		"DATA_DIR": data, "ROUTING_FILE": "sandbox.yaml", "LISTEN": "127.0.0.1:0",
		"RECEIPTS_LISTEN": receipts, "LOG_FORMAT": "json",
		"SECRETS_DIR": filepath.Join(folder, "accounts", "secrets"),
	}
	carriers := launch(t, "sandbox", folder,
		map[string]string{
			"DATA_DIR": filepath.Join(folder, "accounts"), "RECEIPTS_LISTEN": receipts,
		},
		"sandbox", "--routing", "sandbox.yaml", "--format", "json", "--delivered", "1",
		"--receipt-delay", "50ms")
	carriers.awaitOutput(t, `"carriers"`)
	running := launch(t, "dispatcher", folder, settings, "run", "--embedded", "--kafka-port", "0",
		"--postgres-port", "0")
	running.awaitOutput(t, "dispatcher is running")
	n := 20 * len(sandbox.Providers()) // so many that every channel is drawn
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"id":"trial-%d","to":"+9997%07d","from":"Sandbox","text":"Hello"}`,
			i, i)
	}
	err := os.WriteFile(filepath.Join(folder, "messages.jsonl"),
		[]byte(strings.Join(lines, "\n")+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	send := launch(t, "send", folder, map[string]string{"DATA_DIR": data}, "send",
		"--file", "messages.jsonl", "--lane", "bulk")
	if code := send.wait(t, stepTimeout); code != exitOK {
		t.Fatalf("send ended with %d: %s", code, send.out)
	}
	endpoints, ok := embedded.ReadEndpoints(data)
	if !ok {
		t.Fatal("no embedded servers")
	}
	tier.Within(t, stepTimeout, "every message is delivered", func() bool {
		return queryOne[int64](t, endpoints.PostgresURL,
			`select count(*) from audit.messages where state = 'delivered'`) == int64(n)
	})
	carriers.signal(t, syscall.SIGINT)
	if code := carriers.wait(t, stepTimeout); code != exitInterrupted {
		t.Errorf("the sandbox ended with %d", code)
	}
	printed := strings.Split(strings.TrimSpace(carriers.out.String()), "\n")
	var last struct{ Summary []sandbox.Count }
	if err := json.Unmarshal([]byte(printed[len(printed)-1]), &last); err != nil {
		t.Fatalf("%v in %s", err, carriers.out)
	}
	delivered := 0
	for _, c := range last.Summary {
		delivered += c.Delivered
		stored := queryOne[int64](t, endpoints.PostgresURL,
			`select count(*) from audit.attempts where delivered_at is not null and channel = $1`,
			c.Channel)
		if int64(c.Delivered) != stored || c.Submitted == 0 || c.Unread > 0 {
			t.Errorf("got %d stored receipts of %s: %+v", stored, c.Channel, c)
		}
	}
	if delivered != n {
		t.Errorf("the carriers printed %d messages: %+v", delivered, last.Summary)
	}
}
