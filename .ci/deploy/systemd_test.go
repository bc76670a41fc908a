package deploy

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dispatcher/config"
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
		environment[name] = strings.Trim(value, `"`)
	}
	return environment
}

// TestShellsReadTheServiceSettings as systemd does: operators source the file before they call a
// command, as docs/runbook.md says. Without its quotes, the & of a URL would end the command.
func TestShellsReadTheServiceSettings(t *testing.T) {
	const file = "deploy/systemd/dispatcher.env"
	all := filepath.Join(t.TempDir(), "dispatcher.env")
	if err := os.WriteFile(all, bytes.ReplaceAll(read(t, file), []byte("\n#DISPATCHER_"),
		[]byte("\nDISPATCHER_")), 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(read(t, "docs/runbook.md"),
		[]byte("(set -a; . /etc/dispatcher/dispatcher.env; dispatcher doctor)")) {
		t.Error("docs/runbook.md reads the file in another way")
	}
	shell := exec.Command("sh", "-c", "set -a; . "+all+"; env")
	shell.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(string(out), "\n")
	for name, value := range environmentFile(t, file) {
		if !slices.Contains(lines, name+"="+value) {
			t.Errorf("a shell does not set %s to %s:\n%s", name, value, out)
		}
	}
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
		environment[name] = password
	}
	for _, variable := range config.Variables() {
		if strings.HasSuffix(variable.Name, "_FILE") && environment[variable.Name] == "" {
			t.Errorf("the environment file does not show %s", variable.Name)
		}
	}
	delete(environment, "DISPATCHER_KAFKA_CA_FILE") // it would be parsed
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
	// For a key that it does not know, systemd only prints a line on standard error.
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
