package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/sandbox"
)

// TestTheSandboxWorksWithAnEmbeddedRunAtOnce does what docs/sandbox.md says, with nothing set but the file and the ports: the
// message of a person comes back as delivered, over every kind of provider.
func TestTheSandboxWorksWithAnEmbeddedRunAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "trial")
	settings := map[string]string{
		"DATA_DIR": data, "ROUTING_FILE": "sandbox.yaml", "LISTEN": "127.0.0.1:0", "RECEIPTS_LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json",
	}
	carriers := launch(t, "sandbox", folder, map[string]string{"DATA_DIR": filepath.Join(folder, "accounts")},
		"sandbox", "--routing", "sandbox.yaml", "--format", "json", "--delivered", "1", "--receipt-delay", "50ms", "--providers", strings.Join(localProviders(), ","))
	carriers.says(t, `"carriers"`)
	running := launch(t, "dispatcher", folder, settings, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	running.says(t, "dispatcher is running")
	n := 3 * len(localProviders())
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"id":"trial-%d","to":"+9997%07d","from":"Sandbox","text":"Hello"}`, i, i)
	}
	if err := os.WriteFile(filepath.Join(folder, "messages.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	send := launch(t, "send", folder, map[string]string{"DATA_DIR": data}, "send", "--file", "messages.jsonl", "--lane", "bulk")
	if code := send.wait(t, patience); code != exitOK {
		t.Fatalf("send ended with %d: %s", code, send.out)
	}
	endpoints, ok := app.ReadEndpoints(data)
	if !ok {
		t.Fatal("no embedded servers")
	}
	eventually(t, patience, "every message is delivered", func() bool {
		return queryOne[int64](t, endpoints.PostgresURL, `select count(*) from audit.messages where state = 'delivered'`) == int64(n)
	})
	carriers.signal(t, syscall.SIGINT)
	if code := carriers.wait(t, patience); code != exitOK {
		t.Errorf("the sandbox ended with %d", code)
	}
	told := strings.Split(strings.TrimSpace(carriers.out.String()), "\n")
	var last struct{ Summary []sandbox.Count }
	if err := json.Unmarshal([]byte(told[len(told)-1]), &last); err != nil {
		t.Fatalf("%v in %s", err, carriers.out)
	}
	delivered := 0
	for _, c := range last.Summary {
		delivered += c.Delivered
	}
	if delivered != n {
		t.Errorf("the carriers told of %d: %+v", delivered, last.Summary)
	}
}

// localProviders are those that are told with each message where to call. An account that calls one address for all would
// need to know the port of the dispatcher, which is a free one here.
func localProviders() (words []string) {
	for _, word := range sandbox.Providers() {
		if word != "aws" {
			words = append(words, word)
		}
	}
	return words
}
