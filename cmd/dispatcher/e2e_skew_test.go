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

// skewVariable tells the skewed build by how many seconds its clock is wrong.
const skewVariable = "SKEW_SECONDS"

// skewed is the program under test with a clock of its own, made once per test process. No setting
// of the product moves its clock: the build replaces time.Now of the standard library, for this
// binary alone.
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

// skewedBinary returns the path of the program whose clock is wrong by skewVariable.
func skewedBinary(t testing.TB) string {
	t.Helper()
	path, err := skewed()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// addedToTime reads the skew without a package that itself needs package time.
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
		return "", os.ErrInvalid // another Go: look at time.Now
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

// TestTheSkewedClockIsWrong: or the stories that rely on it would prove nothing.
func TestTheSkewedClockIsWrong(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, plot{})
	p := s.runSkewed("dispatcher", "eu", -3600)
	p.says(t, "dispatcher is running")
	var line struct{ Time time.Time }
	first, _, _ := strings.Cut(p.out.String(), "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		t.Fatal(err)
	}
	if behind := time.Since(line.Time); behind < 50*time.Minute || behind > 70*time.Minute {
		t.Errorf("its log is %s behind", behind)
	}
}
