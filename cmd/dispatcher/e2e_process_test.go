package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// stepTimeout is the limit for steps that normally take a moment. The tests of many packages may
// run at the same time.
const stepTimeout = 3 * time.Minute

// process is one run of the program.
type process struct {
	name string
	pid  int
	out  *output       // standard output and standard error
	done chan struct{} // closed when it has ended
	code int           // exit code, -1 after a signal; valid once done is closed
}

// output collects the output of a process.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch starts the program in a folder with these DISPATCHER_ variables only. At the end of the
// test it is stopped, if it still runs, and must exit with code 0.
func launch(
	t testing.TB, name, folder string, settings map[string]string, args ...string,
) *process {
	t.Helper()
	return launchWith(t, name, folder, os.TempDir(), settings, args...)
}

// launchWith is launch with a folder for temporary files.
func launchWith(
	t testing.TB, name, folder, temporary string, settings map[string]string, args ...string,
) *process {
	t.Helper()
	return launchProgram(t, name, program{path: binary(t), folder: folder, temporary: temporary},
		settings, args...)
}

// program is a binary with its working folder, settings and further environment.
type program struct {
	path, folder, temporary string
	variables               []string // further ones of its environment
}

// launchProgram is launch for another build of the program.
func launchProgram(
	t testing.TB, name string, what program, settings map[string]string, args ...string,
) *process {
	t.Helper()
	p := &process{name: name, out: &output{}, done: make(chan struct{})}
	cmd := exec.Command(what.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = what.folder, p.out, p.out
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + what.temporary,
		runAsProgram + "=1",
	}, what.variables...)
	for key, value := range settings {
		cmd.Env = append(cmd.Env, "DISPATCHER_"+key+"="+value)
	}
	// A process group of its own: Ctrl-C in the terminal goes to the test, which cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithTest(cmd.SysProcAttr)
	if err := p.start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cleanUp(t) })
	return p
}

// start runs cmd from a thread that lives until it ends: the kernel takes the end of that thread
// for the end of the test process.
func (p *process) start(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit code is read below
			p.code = cmd.ProcessState.ExitCode()
			close(p.done)
		}
	}()
	return <-started
}

func (p *process) cleanUp(t testing.TB) {
	select {
	case <-p.done:
	default:
		p.signal(t, syscall.SIGTERM)
		select {
		case <-p.done:
			if p.code != exitOK {
				t.Errorf("%s ended with exit code %d after SIGTERM", p.name, p.code)
			}
		case <-time.After(stepTimeout):
			t.Errorf("%s still ran %s after SIGTERM", p.name, stepTimeout)
			p.signal(t, syscall.SIGKILL)
			<-p.done
		}
	}
	for _, bad := range []string{"panic:", "DATA RACE", "goroutine "} {
		if _, report, found := strings.Cut(p.out.String(), bad); found {
			t.Errorf("%s printed %s%.3000s", p.name, bad, report)
			break
		}
	}
	if t.Failed() {
		t.Logf("the end of what %s printed:\n%s", p.name, lastLines(p.out.String(), 25))
	}
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	if err := syscall.Kill(p.pid, s); err != nil {
		t.Errorf("signal %s: %v", p.name, err)
	}
}

// stop sends SIGTERM and expects exit code 0.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t, stepTimeout); code != exitOK {
		t.Errorf("%s ended with exit code %d after SIGTERM", p.name, code)
	}
}

// kill sends SIGKILL and waits for the end of the process.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t, stepTimeout)
}

// wait waits for the end of the process and returns its exit code.
func (p *process) wait(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(within):
		t.Fatalf("%s did not end within %s; it printed:\n%s", p.name, within,
			lastLines(p.out.String(), 25))
		return -1
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// awaitOutput waits until the process has printed a text.
func (p *process) awaitOutput(t testing.TB, text string) {
	t.Helper()
	tier.Within(t, stepTimeout, p.name+" prints "+text, func() bool {
		if strings.Contains(p.out.String(), text) {
			return true
		}
		if !p.running() {
			t.Fatalf("%s ended with exit code %d before it printed %q:\n%s", p.name, p.code, text,
				p.out.String())
		}
		return false
	})
}

var adminURL = regexp.MustCompile(`"url":"(http://[^"]+)"`)

// get reads a page of the process's admin server.
func (p *process) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	p.awaitOutput(t, "dispatcher is running")
	url := adminURL.FindStringSubmatch(p.out.String())
	if url == nil {
		t.Fatalf("%s does not print the address of its admin server", p.name)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: stepTimeout}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url[1]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end.
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}
