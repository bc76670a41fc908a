package deploy

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// environmentFile reads NAME=VALUE lines; commented settings are loaded too, because operators turn
// them on.
func environmentFile(t *testing.T, path string) map[string]string {
	t.Helper()
	environment := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(read(t, path))); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "# ") || line == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "#"), "=")
		if !ok {
			t.Fatalf("%s: %q sets nothing", path, line)
		}
		environment[name] = value
	}
	return environment
}

func TestServiceSettingsLoad(t *testing.T) {
	environment := environmentFile(t, "deploy/systemd/dispatcher.env")
	// The file is one of the target machine.
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"DISPATCHER_KAFKA_SASL_PASSWORD_FILE", "DISPATCHER_OIDC_CLIENT_SECRET_FILE",
	} {
		if environment[name] == "" {
			t.Errorf("the environment file does not show %s", name)
		}
		environment[name] = password
	}
	s := loadSettings(t, environment)
	if s.DataDir != "/var/lib/dispatcher" {
		t.Errorf("the unit's state folder is not %s", s.DataDir)
	}
	if s.APITokensFile == "" || s.OIDCIssuer == "" {
		t.Error("the environment file does not show how the API and the console are opened")
	}
}

// TestServiceUnitIsGood asks systemd, where it is installed.
func TestServiceUnitIsGood(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("not checked: there is no systemd-analyze")
		return
	}
	program, err := dispatcher()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "dispatcher.service")
	text := strings.ReplaceAll(string(read(t, "deploy/systemd/dispatcher.service")),
		"/usr/bin/dispatcher", program)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// A key that systemd does not know is only a line on standard error.
	out, err := exec.Command("systemd-analyze", "verify", "--recursive-errors=no", "--man=no",
		unit).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if err != nil || strings.Contains(line, "dispatcher.service") {
			t.Errorf("%v %s", err, line)
		}
	}
	out, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=15",
		"--no-pager", unit).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
