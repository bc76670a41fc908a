package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a measured process.
type process struct {
	cmd   *exec.Cmd
	url   string
	log   *os.File
	ended chan struct{}
	err   error // set before ended is closed
}

func startProcess(ctx context.Context, self, command string, env []string) (*process, error) {
	log, err := os.CreateTemp("", "dispatcher-bench-*.log")
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd:   exec.CommandContext(context.WithoutCancel(ctx), self, command),
		log:   log,
		ended: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), append(env, "DISPATCHER_LOG_LEVEL=info")...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // this process passes Ctrl-C on
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, p.discard())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if p.url, err = p.awaitURL(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// awaitURL reads the process's log until it says where the process listens.
func (p *process) awaitURL(ctx context.Context) (string, error) {
	for {
		raw, err := os.ReadFile(p.log.Name())
		if err != nil {
			return "", err
		}
		if _, rest, ok := strings.Cut(string(raw), `"url":"`); ok {
			if url, _, ok := strings.Cut(rest, `"`); ok {
				return url, nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ended:
			return "", fmt.Errorf("it ended while it was starting: %s", p.tail())
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// tail is the end of the process's output.
func (p *process) tail() string {
	raw, _ := os.ReadFile(p.log.Name())
	return strings.TrimSpace(string(raw[max(0, len(raw)-500):]))
}

func (p *process) discard() error {
	return errors.Join(p.log.Close(), os.Remove(p.log.Name()))
}

// stop asks the process to end and waits for that.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.err != nil {
		return errors.Join(fmt.Errorf("%s: %w: %s", p.cmd.Args[1], p.err, p.tail()), p.discard())
	}
	return p.discard()
}

// residentMegabytes is the peak resident memory so far.
func (p *process) residentMegabytes() (float64, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, nil // only Linux has it; elsewhere the figure is 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, nil
}

// scrape reads unlabelled samples from a metrics page.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	return parseSamples(response.Body)
}

func parseSamples(r io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	for scanner := bufio.NewScanner(r); ; {
		if !scanner.Scan() {
			return values, scanner.Err()
		}
		name, text, ok := strings.Cut(scanner.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
}
