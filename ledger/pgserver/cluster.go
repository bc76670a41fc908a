package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// create makes the cluster unless it is there. It is built under another name and
// renamed at the end, so that an interrupted initdb leaves nothing half-made.
func (f folder) create(ctx context.Context, b binaries, id identity, password string) error {
	if _, err := os.Stat(filepath.Join(f.data(), "PG_VERSION")); err == nil {
		return f.checkVersion(b)
	}
	fresh := f.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove half-made cluster: %w", err)
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
	cmd := exec.CommandContext(ctx, b.path("initdb"), "--pgdata="+fresh, "--username="+User, "--pwfile="+secret,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions")
	cmd.Dir = "/"
	if err := run(cmd, id); err != nil {
		return fmt.Errorf("create database cluster: %w", err)
	}
	return os.Rename(fresh, f.data())
}

// checkVersion refuses a cluster of another major version, which postgres could not read.
func (f folder) checkVersion(b binaries) error {
	content, err := os.ReadFile(filepath.Join(f.data(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("read cluster version: %w", err)
	}
	if v := strings.TrimSpace(string(content)); v != strconv.Itoa(b.major) {
		return fmt.Errorf("the data in %s was made by PostgreSQL %s and the programs in %s are version %d: "+
			"install version %s, move the data with pg_upgrade, or choose another folder with DISPATCHER_DATA_DIR",
			f.data(), v, b.dir, b.major, v)
	}
	return nil
}

// secret reads the password of an existing folder or makes one. It is kept in the
// format of a libpq password file: PGPASSFILE=Dir/pgpass psql ... needs no typing.
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
	if err := os.WriteFile(f.password(), []byte("*:*:*:"+User+":"+password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep password of private PostgreSQL: %w", err)
	}
	return password, nil
}

// tail is the end of a program's output, short enough for an error.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
