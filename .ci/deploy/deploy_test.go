// Package deploy checks what is in deploy/ with the libraries of the programs that read it:
// BuildKit, Compose, Helm, kubeconform, the types of Kubernetes, Prometheus and GoReleaser.
// Settings and routing documents are loaded by package config, so that a renamed setting fails
// here.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dispatcher/config"
)

// root is the checkout.
const root = "../.."

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// loadSettings reads settings as a process with this environment would, and checks that they make
// sense together, as "run" does. What names a file of the target machine is there only by its name.
func loadSettings(t *testing.T, environment map[string]string) config.Settings {
	t.Helper()
	settings := loadWithout(t, environment)
	if err := settings.Validate(false); err != nil {
		t.Fatal(err)
	}
	return settings
}

// loadWithout is loadSettings without what only "run" needs.
func loadWithout(t *testing.T, environment map[string]string) config.Settings {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, config.Prefix+"_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	settings, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := settings.Validate(true); err != nil {
		t.Fatal(err)
	}
	return settings
}

// programs is the folder of dispatcher.
var programs string

// dispatcher is the program of this checkout, built once.
var dispatcher = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "dispatcher")
	build := exec.Command("go", "build", "-o", program, "./cmd/dispatcher")
	build.Dir = root
	build.Stderr = os.Stderr
	return program, build.Run()
})

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(programs); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// run executes the dispatcher and returns what it prints.
func run(t *testing.T, arguments ...string) string {
	t.Helper()
	program, err := dispatcher()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("dispatcher %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// TestRoutingDocumentsAreGood also checks the settings of each channel, as "routing apply" does.
func TestRoutingDocumentsAreGood(t *testing.T) {
	for _, path := range []string{"deploy/routing.example.yaml", "deploy/compose/routing.yaml"} {
		if _, err := config.ParseDocument(path, read(t, path)); err != nil {
			t.Error(err)
		}
		run(t, "config", "--routing", filepath.Join(root, path))
	}
}
