package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// schemathesis and the library that draws its requests: with both fixed, a seed draws the same.
var schemathesis = []string{"schemathesis==4.32.5", "hypothesis==6.170.17"}

// apiTimeout bounds a run. The longest lasts some 20 s.
const apiTimeout = 20 * time.Minute

// apiRuns are the runs of Schemathesis. An admin may do all: the others see more refusals.
var apiRuns = []struct{ name, role, phases, examples string }{
	{"edges", "admin", "coverage", "1"},
	{"drawn", "admin", "fuzzing,stateful", "12"},
	{"operator", "operator", "fuzzing", "8"},
	{"viewer", "viewer", "fuzzing", "8"},
	{"finance", "finance", "fuzzing", "8"},
	{"sender", "sender", "fuzzing", "8"},
}

// TestTheAPIIsAsItsDescriptionSays lets Schemathesis draw requests from the description that a
// running dispatcher serves, valid and invalid ones of all operations, with a token of each role,
// and check the answers. schemathesis.toml says which checks do not fit.
func TestTheAPIIsAsItsDescriptionSays(t *testing.T) {
	parts := strings.Join(schemathesis, "\n")
	folder := installed.api.fill(t, "schemathesis", parts, func(folder string) {
		run(t, "python3", "-m", "venv", folder)
		run(t, filepath.Join(folder, "bin/python"), append([]string{
			"-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		}, schemathesis...)...)
	})
	url, tokens := startWithTokens(t)
	for _, r := range apiRuns {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			checkAPI(t, filepath.Join(folder, "bin/st"), url, tokens[r.name], r.phases, r.examples)
		})
	}
}

func checkAPI(t *testing.T, st, url, token, phases, examples string) {
	t.Helper()
	work := t.TempDir()
	settings := filepath.Join(work, "schemathesis.toml")
	config, err := os.ReadFile("schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	// In a file, so that the token is in no list of processes.
	write(t, settings, "headers = {Authorization = \"Bearer "+token+"\"}\n"+string(config))
	out, err := try(t, apiTimeout, nil, st, "--config-file", settings, "--no-color", "run",
		url+"/api/v1/openapi.json", "--phases", phases, "--max-examples", examples, "--seed", "7",
		"--report", "junit", "--report-dir", work)
	if err != nil {
		t.Fatal(err)
	}
	// All but the stream of the status, which does not end.
	tested := regexp.MustCompile(`Selected:\s+(\d+)/(\d+)\s+Tested:\s+(\d+)`).FindStringSubmatch(out)
	if tested == nil || tested[1] != tested[3] || number(t, tested[1]) != number(t, tested[2])-1 {
		t.Errorf("not every operation was tested:\n%s", out)
	}
	if strings.Contains(out, "Rate limited") {
		t.Errorf("requests were refused because they came too fast:\n%s", out)
	}
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startWithTokens runs the dispatcher with servers of its own and returns where its API is, and a
// token for each run.
func startWithTokens(t *testing.T) (url string, tokens map[string]string) {
	t.Helper()
	folder := openFolder(t)
	address := "127.0.0.1:" + strconv.Itoa(tier.FreePort(t))
	settings := []string{
		"DISPATCHER_API_TOKENS_FILE=" + filepath.Join(folder, "tokens"),
		"DISPATCHER_DATA_DIR=" + folder, "DISPATCHER_LISTEN=" + address,
		"DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0", "DISPATCHER_API_INTAKE=true",
		"DISPATCHER_API_RATE=1000", // more than a run asks for
	}
	tokens = map[string]string{}
	for _, r := range apiRuns {
		out, err := try(t, timeout, settings, dispatcher(t), "tokens", "new", "--name", r.name,
			"--role", r.role)
		if err != nil {
			t.Fatal(err)
		}
		tokens[r.name], _, _ = strings.Cut(out, "\n")
	}
	serve(t, settings, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	sendFile(t, settings)
	return "http://" + address, tokens
}
