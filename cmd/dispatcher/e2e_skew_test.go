package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// skewVariable sets by how many seconds the clock of the skewed build is wrong.
const skewVariable = "SKEW_SECONDS"

// skewed builds the program with a shifted clock, once per test process. The product has no setting
// that moves its clock: this build replaces time.Now of the standard library.
var skewed = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "dispatcher-skew-")
	if err != nil {
		return "", err
	}
	overlay, err := writeSkew(folder)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "dispatcher")
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program with another clock: %w: %s", err, out)
	}
	return path, nil
})

// skewedBinary returns the path of the build whose clock is wrong by skewVariable.
func skewedBinary(t testing.TB) string {
	t.Helper()
	path, err := skewed()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// addedToTime reads the skew without importing a package that imports time.
const addedToTime = `package time

import "syscall"

var skewedBy = readSkew()

func readSkew() (seconds int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	for _, r := range text {
		if r >= '0' && r <= '9' {
			seconds = 10*seconds + int64(r-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -seconds
	}
	return seconds
}
`

// writeSkew writes the overlay for the build and returns its path.
func writeSkew(folder string) (string, error) {
	// Runtime.GOROOT is empty under -trimpath.
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(original), now) != 1 {
		return "", os.ErrInvalid // another Go version: look at time.Now
	}
	files := map[string]string{
		"time.go": strings.Replace(string(original), now, now+"\tsec += skewedBy\n", 1),
		"skew.go": addedToTime,
	}
	replace := map[string]string{}
	for name, content := range files {
		mine := filepath.Join(folder, "skewed-"+name)
		if err := os.WriteFile(mine, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(library, name)] = mine
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
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
		path: skewedBinary(s.t), folder: s.folder, temporary: os.TempDir(), variables: []string{
			skewVariable + "=" + strconv.Itoa(seconds),
		},
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
