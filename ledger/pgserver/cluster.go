package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// create creates the cluster unless it exists. It is built under another name and renamed at the
// end, so that an interrupted initdb leaves no incomplete cluster.
func (f folder) create(ctx context.Context, b binaries, id identity, password string) error {
	if _, err := os.Stat(filepath.Join(f.data(), "PG_VERSION")); err == nil {
		return f.checkVersion(b)
	}
	fresh := f.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove incomplete cluster: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("make cluster folder: %w", err)
	}
	secret := f.data() + ".secret"
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand over password: %w", err)
	}
	defer os.Remove(secret) //nolint:errcheck // It is overwritten by the next try.
	for _, path := range []string{fresh, secret} {
		if err := id.own(path); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, b.path("initdb"), "--pgdata="+fresh, "--username="+User,
		"--pwfile="+secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
		"--no-instructions")
	if err := run(cmd, id); err != nil {
		return fmt.Errorf("create database cluster: %w", err)
	}
	return os.Rename(fresh, f.data())
}

// checkVersion returns an error for a cluster of another major version, which postgres could not
// read.
func (f folder) checkVersion(b binaries) error {
	content, err := os.ReadFile(filepath.Join(f.data(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("read cluster version: %w", err)
	}
	if v := strings.TrimSpace(string(content)); v != strconv.Itoa(b.major) {
		return fmt.Errorf("the data in %s was made by PostgreSQL %s and the programs in %s are "+
			"version %d: install version %s, move the data with pg_upgrade, or choose another "+
			"folder with DISPATCHER_DATA_DIR", f.data(), v, b.dir, b.major, v)
	}
	return nil
}

// secret reads the password of an existing folder or creates one. It is stored in the format of a
// libpq password file, so that psql can use it: PGPASSFILE=Dir/pgpass psql ...
func (f folder) secret() (string, error) {
	content, err := os.ReadFile(f.password())
	if err == nil {
		parts := strings.Split(strings.TrimSpace(string(content)), ":")
		return parts[len(parts)-1], nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read password of private PostgreSQL: %w", err)
	}
	password := rand.Text()
	line := "*:*:*:" + User + ":" + password + "\n"
	if err := os.WriteFile(f.password(), []byte(line), 0o600); err != nil {
		return "", fmt.Errorf("keep password of private PostgreSQL: %w", err)
	}
	return password, nil
}

// clearLock handles a postmaster.pid that an earlier server left behind. If that server or one of
// its sessions still runs, because its parent was killed a moment ago, clearLock waits for it to
// end. A file without a server is removed: after a reboot another program may have its process id,
// and PostgreSQL would not start.
func (f folder) clearLock(ctx context.Context) error {
	pidFile := filepath.Join(f.data(), "postmaster.pid")
	timeout := time.After(orphanTimeout)
	for {
		content, err := os.ReadFile(pidFile)
		if err != nil {
			return nil //nolint:nilerr // There is none, or PostgreSQL says what is wrong with it.
		}
		line, _, _ := bytes.Cut(content, []byte("\n"))
		postmaster, _ := strconv.Atoi(string(bytes.TrimSpace(line)))
		pid := occupant(f.data(), postmaster)
		if pid == 0 {
			if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove stale lock: %w", err)
			}
			return nil
		}
		select {
		case <-time.After(poll):
			continue
		case <-timeout:
		case <-ctx.Done():
		}
		return fmt.Errorf("folder %s is in use by another PostgreSQL server (process %d): stop "+
			"the dispatcher that started it or choose another folder with DISPATCHER_DATA_DIR",
			f.dir, pid)
	}
}

// occupant finds a live process of the cluster; 0 when there is none. The working directory of a
// postmaster and of all its children is the data folder. Where working directories cannot be read,
// the postmaster of the lock file counts as long as it is alive.
func occupant(data string, postmaster int) (pid int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is well formed
	if len(links) == 0 && postmaster > 0 {
		err := syscall.Kill(postmaster, 0)
		if err == nil || errors.Is(err, syscall.EPERM) {
			return postmaster
		}
	}
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && cwd == data {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			return pid
		}
	}
	return 0
}
