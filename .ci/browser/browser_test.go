// Package browser works the console in a real Chromium, over a dispatcher with its own servers and
// the data of the demo, and checks each page with axe-core.
package browser

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// stepTimeout is how long a page, a program or a download may take on a machine that is busy.
const stepTimeout = 3 * time.Minute

// root is the checkout.
const root = "../.."

// binary is the dispatcher, built once.
var binary = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "dispatcher-browser-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "dispatcher")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/dispatcher")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{string(out)}
	}
	return path, nil
})

type buildError struct{ out string }

func (e *buildError) Error() string { return "go build: " + e.out }

// output collects what a program prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
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

// site is a running dispatcher with the data of the demo.
type site struct {
	url    string
	data   string
	tokens map[string]string // by role
	env    []string          // of every command
}

// dispatcher runs a command to its end.
func (s *site) dispatcher(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := s.command(t, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("dispatcher %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *site) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "DISPATCHER_DATA_DIR="+s.data, "DISPATCHER_LISTEN=127.0.0.1:0",
		"DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
		"DISPATCHER_API_TOKENS_FILE="+filepath.Join(s.data, "tokens"))
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

var ports = []string{"--kafka-port", "0", "--postgres-port", "0"}

// start runs the demo and then a dispatcher over its data. Both stop at the end of the test.
func start(t *testing.T, env ...string) *site {
	t.Helper()
	s := &site{data: filepath.Join(t.TempDir(), "data"), tokens: map[string]string{}, env: env}
	// The folder is open to all because PostgreSQL runs as another user.
	for at := s.data; strings.Contains(at, t.Name()); at = filepath.Dir(at) {
		_ = os.Chmod(filepath.Dir(at), 0o755)
	}
	if err := os.Mkdir(s.data, 0o755); err != nil {
		t.Fatal(err)
	}
	s.makeTokens(t)
	s.dispatcher(t, "", append([]string{"demo", "--keep", "--messages", "3000", "--seed", "7"},
		ports...)...)
	cmd := s.command(t, append([]string{"run", "--embedded"}, ports...)...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-done:
		case <-time.After(stepTimeout):
			t.Errorf("the dispatcher does not stop:\n%s", out)
			_ = cmd.Process.Kill()
			<-done
		}
	})
	address := regexp.MustCompile(`"url":"(http://[0-9.:]+)".*"dispatcher is running"`)
	wait(t, "the address of the console", func() bool {
		select {
		case <-done:
			t.Fatalf("the dispatcher has ended:\n%s", out)
		default:
		}
		found := address.FindStringSubmatch(out.String())
		if found != nil {
			s.url = found[1]
		}
		return found != nil
	})
	return s
}

// makeTokens makes a token for each role.
func (s *site) makeTokens(t *testing.T) {
	t.Helper()
	for _, role := range []string{"viewer", "operator", "finance", "admin"} {
		out := s.dispatcher(t, "", "tokens", "new", "--name", "anna-"+role, "--role", role)
		s.tokens[role], _, _ = strings.Cut(out, "\n")
	}
}

// wait waits until a condition holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(stepTimeout)
	for !holds() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("timeout: %s", what)
		}
	}
}

// browser starts a Chromium with one tab.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	do(t, ctx)
	return ctx
}

// tab opens another tab of the same browser, with the same cookies.
func tab(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	other, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	do(t, other)
	return other
}

// do runs steps in a tab.
func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	// No timeout on the context: the first one would end the browser.
	timer := time.AfterFunc(stepTimeout, func() { t.Error("a step in the browser takes too long") })
	defer timer.Stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// open loads a page and waits for its heading.
func open(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("h1")))
}

// value evaluates a JavaScript expression in the page.
func value[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text is the text of the first element that a selector finds, or empty.
func text(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	return value[string](t, ctx, `document.querySelector(`+"`"+selector+"`"+`)?.innerText ?? ""`)
}

// look sets the size and the colour scheme of the tab's screen.
func look(t *testing.T, ctx context.Context, width, height int64, scheme string) {
	t.Helper()
	do(t, ctx, chromedp.EmulateViewport(width, height), chromedp.Func(
		func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme},
				}})
			return err
		}))
}
