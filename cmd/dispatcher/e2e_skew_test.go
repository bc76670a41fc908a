package main

import (
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// skewed are the programs with a wrong clock, by the error of the clock in seconds. Each is built
// once per test process.
var skewed struct {
	mu    sync.Mutex
	paths map[int]string
}

// skewedBinary returns the path of a build whose clock is wrong by some seconds.
func skewedBinary(t testing.TB, seconds int) string {
	t.Helper()
	skewed.mu.Lock()
	defer skewed.mu.Unlock()
	if path := skewed.paths[seconds]; path != "" {
		return path
	}
	folder, err := os.MkdirTemp("", "dispatcher-skew-") //nolint:usetesting // Other tests need it.
	if err != nil {
		t.Fatal(err)
	}
	path, err := buildSkewed(folder, seconds)
	if err != nil {
		t.Fatalf("build the program with another clock: %v", err)
	}
	if skewed.paths == nil {
		skewed.paths = map[int]string{}
	}
	skewed.paths[seconds] = path
	return path
}

// buildSkewed builds the program with a wrong clock in a folder and returns its path. The product
// has no setting that moves its clock: here time.Now of the standard library adds a constant. With
// another package time everything would be compiled again, so only that package is compiled, and
// the program is linked with it. The linker allows that because the package exports the same, down
// to the names and lines of its files.
func buildSkewed(folder string, seconds int) (path string, err error) {
	packages, err := goTool("list", "-export", "-deps", "-f",
		"{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", ".")
	if err != nil {
		return "", err
	}
	sources, err := copyTime(folder, seconds)
	if err != nil {
		return "", err
	}
	imports, library := filepath.Join(folder, "imports"), filepath.Join(folder, "time.a")
	if err := os.WriteFile(imports, []byte(packages), 0o600); err != nil {
		return "", err
	}
	if _, err := goTool(append([]string{
		"tool", "compile", "-p", "time", "-std", "-lang=" + goversion.Lang(runtime.Version()),
		"-nolocalimports", "-trimpath", folder + "=>$GOROOT/src/time", "-importcfg", imports,
		"-pack", "-o", library,
	}, sources...)...); err != nil {
		return "", err
	}
	program := ""
	var linked strings.Builder
	for line := range strings.Lines(packages) {
		name, archive, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "packagefile "), "=")
		switch name {
		case "dispatcher/cmd/dispatcher":
			program = archive
		case "time":
			archive = library
		}
		fmt.Fprintf(&linked, "packagefile %s=%s\n", name, archive)
	}
	if err := os.WriteFile(imports, []byte(linked.String()), 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(folder, "dispatcher")
	_, err = goTool("tool", "link", "-s", "-w", "-importcfg", imports, "-o", path, program)
	return path, err
}

// copyTime copies the sources of package time into a folder, with a constant in time.Now.
func copyTime(folder string, seconds int) (sources []string, err error) {
	names, err := goTool("list", "-f", "{{.Dir}}{{range .GoFiles}}\n{{.}}{{end}}", "time")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(names), "\n")
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()"
	changed := 0
	for _, name := range lines[1:] {
		text, err := os.ReadFile(filepath.Join(lines[0], name))
		if err != nil {
			return nil, err
		}
		changed += strings.Count(string(text), now)
		skew := fmt.Sprintf("%s; sec += %d", now, seconds)
		target := filepath.Join(folder, name)
		if err := os.WriteFile(target, []byte(strings.ReplaceAll(string(text), now, skew)),
			0o600); err != nil {
			return nil, err
		}
		sources = append(sources, target)
	}
	if changed != 1 {
		return nil, errors.New("time.Now is not as expected: look at the source of this Go version")
	}
	return sources, nil
}

// goTool returns what a command of the go tool prints.
func goTool(arguments ...string) (string, error) {
	cmd := exec.Command("go", arguments...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments[:2], " "), err, said.String())
	}
	return string(out), nil
}

// runSkewed starts a dispatcher in a region, with a clock that is wrong by some seconds.
func (s *stage) runSkewed(name, region string, seconds int) *process {
	s.t.Helper()
	if seconds == 0 {
		return s.runWith(name, map[string]string{"REGION": region}) // the usual build
	}
	settings := map[string]string{}
	maps.Copy(settings, s.settings)
	settings["REGION"] = region
	return launchProgram(s.t, name, program{
		path: skewedBinary(s.t, seconds), folder: s.folder, temporary: os.TempDir(),
	}, settings, "run")
}

// TestTheSkewedClockIsWrong: otherwise the stories that use it would prove nothing.
func TestTheSkewedClockIsWrong(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{})
	p := s.runSkewed("dispatcher", "eu", -3600)
	p.awaitOutput(t, "dispatcher is running")
	var line struct{ Time time.Time }
	first, _, _ := strings.Cut(p.out.String(), "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		t.Fatal(err)
	}
	if behind := time.Since(line.Time); behind < 50*time.Minute || behind > 70*time.Minute {
		t.Errorf("its log is %s slow", behind)
	}
}
