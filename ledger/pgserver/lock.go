package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// orphanPatience is how long a server that lost its parent may take to end before
// the folder counts as in use by somebody else.
const orphanPatience = 15 * time.Second

// poll is the pace at which this package looks at a process or a port again.
const poll = 20 * time.Millisecond

// clearLock deals with a postmaster.pid that an earlier server left behind. If that
// server or one of its sessions still runs (its parent was killed a moment ago and it
// is shutting down) clearLock waits for it. A file without a server is removed, because after a
// reboot its number may belong to a stranger and PostgreSQL would refuse to start.
func (f folder) clearLock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphanPatience)
	defer cancel()
	for {
		owner, ok := f.lockOwner()
		if !ok {
			return nil
		}
		pid, ok := occupant(f.data(), owner)
		if !ok {
			if err := os.Remove(f.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove stale lock: %w", err)
			}
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("folder %s is in use by another PostgreSQL server (process %d): "+
				"stop the dispatcher that started it or choose another folder with DISPATCHER_DATA_DIR", f.dir, pid)
		}
	}
}

// lockOwner is the process that postmaster.pid names in its first line.
func (f folder) lockOwner() (pid int, ok bool) {
	content, err := os.ReadFile(f.pidFile())
	if err != nil {
		return 0, false
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	pid, err = strconv.Atoi(string(bytes.TrimSpace(line)))
	return pid, err == nil && pid > 0
}

// occupant finds a live process of the cluster. The working directory of a postmaster
// and of all its children is the data folder. Where that cannot be seen, the owner of the
// lock file counts as long as it is alive.
func occupant(data string, owner int) (pid int, ok bool) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is well formed
	if len(links) == 0 {
		err := syscall.Kill(owner, 0)
		return owner, err == nil || errors.Is(err, syscall.EPERM)
	}
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && cwd == data {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			return pid, err == nil
		}
	}
	return 0, false
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
