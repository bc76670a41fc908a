package main

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/config/tier"
)

// TestRunEmbeddedFollowsAMessageUntilItIsDelivered: the first message ends as the README says,
// settings without effect are named, and Ctrl-C ends the program with 130. The files are not
// accessible to other users, because records and tables hold numbers and texts, even in folders
// that were accessible before.
func TestRunEmbeddedFollowsAMessageUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	older := filepath.Join(openFolder(t), "older")
	for _, made := range []string{
		older, filepath.Join(older, "kafka"), filepath.Join(older, "postgres"),
	} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runsEmbedded(t, older)
}

// TestRunEmbeddedMakesItsFolder is the same in a folder that does not exist yet.
func TestRunEmbeddedMakesItsFolder(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	runsEmbedded(t, filepath.Join(openFolder(t), "data"))
}

func runsEmbedded(t *testing.T, data string) {
	t.Helper()
	folder := filepath.Dir(data)
	p := launch(t, "dispatcher", folder, map[string]string{
		"DATA_DIR": data, "LISTEN": "127.0.0.1:0", "RECEIPTS_LISTEN": "127.0.0.1:0",
		"POSTGRES_URL": "postgres://elsewhere/x", "SHUTDOWN_TIMEOUT": patientStop,
	}, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	p.awaitOutput(t, "dispatcher is running")
	opensOnce(t, p)
	answersWithItsToken(t, p, data)
	send := launch(t, "send", folder, map[string]string{"DATA_DIR": data}, "send",
		"--to", "+447700900123", "--text", "Hello", "--id", "first")
	if code := send.wait(t, stepTimeout); code != exitOK {
		t.Fatalf("send ended with %d: %s", code, send.out)
	}
	endpoints, _ := embedded.ReadEndpoints(data)
	tier.Within(t, stepTimeout, "it is delivered", func() bool {
		return queryOne[int64](t, endpoints.PostgresURL,
			`select count(*) from audit.messages where id = 'first' and state = 'delivered'`) == 1
	})
	checkClosed(t, data)
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

// opensOnce opens the address of the console that the process prints.
func opensOnce(t *testing.T, p *process) {
	t.Helper()
	p.awaitOutput(t, "/login?code=")
	address := regexp.MustCompile(`http://\S+/login\?code=\w+`).FindString(p.out.String())
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for _, want := range []int{http.StatusSeeOther, http.StatusForbidden} {
		response, err := stay.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", address, response.StatusCode, want)
		}
	}
}

// answersWithItsToken calls the API with the token that the process prints, which is also in its
// data folder.
func answersWithItsToken(t *testing.T, p *process, data string) {
	t.Helper()
	printed := regexp.MustCompile(`Token of the API and the console: (\S+) \(also in (.+)\)`).
		FindStringSubmatch(p.out.String())
	base := regexp.MustCompile(`(http://\S+)/login\?code=`).FindStringSubmatch(p.out.String())
	if printed == nil || base == nil {
		t.Fatalf("it printed no token or no address:\n%s", p.out.String())
	}
	token, path := printed[1], filepath.Join(data, config.EmbeddedToken)
	kept, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(kept)) != token || printed[2] != path {
		t.Errorf("got a token in %s that is not the one in %s: %v", printed[2], path, err)
	}
	for header, want := range map[string]int{
		"Bearer " + token: http.StatusOK, "Bearer sms_other": http.StatusUnauthorized,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			base[1]+"/api/v1/whoami", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", header)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var who struct{ Name, Role string }
		err = json.NewDecoder(response.Body).Decode(&who)
		_ = response.Body.Close()
		if response.StatusCode != want || err != nil ||
			want == http.StatusOK && who.Role != access.Admin.String() {
			t.Errorf("%s: got %d, %+v, %v, want %d", header, response.StatusCode, who, err, want)
		}
	}
}

// checkClosed checks the modes of a data folder in use and of everything below it. Sockets are
// protected by their folder.
func checkClosed(t *testing.T, data string) {
	t.Helper()
	want, seen := os.FileMode(0o700), 0
	if os.Geteuid() == 0 {
		want = 0o711 // the user that PostgreSQL runs as must pass through
	}
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // PostgreSQL removes files at any moment
		}
		if err != nil || entry.Type()&(fs.ModeSocket|fs.ModeSymlink) != 0 {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil
		}
		seen++
		switch mode := info.Mode().Perm(); {
		case path == data && mode != want:
			t.Errorf("the data folder has mode %s, want %s", mode, want)
		case path != data && mode&0o077 != 0:
			t.Errorf("%s is accessible to others: %s", path, mode)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d files were checked", seen)
	}
}

// TestEndpointsOfAKilledProcessAreNotTakenForAWrongURL: a killed "run --embedded" leaves the file
// through which commands find its servers.
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
			t.Errorf("%v: got %+v", args, got)
		}
	}
	got := dispatcher(t, "",
		[]string{
			"DISPATCHER_DATA_DIR=" + data, "DISPATCHER_POSTGRES_URL=postgres://u@127.0.0.1:2/x",
		},
		"report", "daily")
	if got.code != exitUsage ||
		!strings.Contains(got.err, "127.0.0.1:2 of DISPATCHER_POSTGRES_URL") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "127.0.0.1:2 of DISPATCHER_POSTGRES_URL")
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
		t.Errorf("got %v", got)
	}
}
