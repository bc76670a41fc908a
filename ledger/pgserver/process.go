package pgserver

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// process is one run of the postgres program.
type process struct {
	pid  int
	done chan struct{} // closed when the process has ended and was reaped
}

// launch starts cmd in a process group of its own, so that Ctrl-C in a terminal reaches only the
// dispatcher, which then stops the server in the right order.
//
// On Linux the kernel ends the server when the thread that started it ends. That thread must
// therefore live as long as the server: a goroutine locked to it starts the process and waits for
// it.
func launch(cmd *exec.Cmd, id identity) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: id.credential()}
	dieWithParent(cmd.SysProcAttr)
	p := &process{done: make(chan struct{})}
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
			_ = cmd.Wait() // how it ended is in the server's log
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal asks the postmaster for one of its shutdown modes; an ended process is fine.
func (p *process) signal(s syscall.Signal) {
	if !p.ended() {
		_ = syscall.Kill(p.pid, s) // it may end at this moment
	}
}

// run executes a short program, such as initdb, as the server's user.
func run(cmd *exec.Cmd, id identity) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: id.credential()}
	cmd.Dir, cmd.Env = "/", environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Path, err, tail(out))
	}
	return nil
}

// environment keeps the user's PG* variables, locale and HOME (which may be unreadable for the
// server's user) away from the server.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/"}
}

// tail is the end of a program's output, short enough for an error.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
