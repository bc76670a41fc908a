package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// binaries is a folder with postgres and initdb of one version.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// find looks for PostgreSQL where it usually is: the configured folder alone if
// there is one, else PATH, pg_config, the folders of Debian, Red Hat and Homebrew,
// an earlier fetch, and at last a new fetch.
func find(ctx context.Context, c Config) (binaries, error) {
	if c.Binaries != "" {
		b, err := inspect(ctx, c.Binaries)
		if err != nil {
			return binaries{}, fmt.Errorf("%w in %s: %w", ErrNotFound, c.Binaries, err)
		}
		return b, nil
	}
	for _, dir := range candidates(ctx) {
		if b, err := inspect(ctx, dir); err == nil {
			return b, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, err // whoever was asked for a version was cut off: that is no reason to fetch a build
	}
	b, err := fetched(ctx, c)
	if err != nil {
		return binaries{}, fmt.Errorf("%w and none could be fetched (%w): install PostgreSQL %d or newer "+
			"(apt-get install postgresql, brew install postgresql), or set DISPATCHER_POSTGRES_URL to a server of your own",
			ErrNotFound, err, Oldest)
	}
	return b, nil
}

// candidates lists folders in the order of preference, without checking them.
func candidates(ctx context.Context) []string {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		// A link in PATH may stand alone: initdb is beside the real program.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are constants and well formed
		slices.Reverse(found)              // newest version first
		dirs = append(dirs, found...)
	}
	return dirs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect checks that dir holds a usable, recent enough pair of programs.
func inspect(ctx context.Context, dir string) (binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, errors.New("it has no initdb")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("postgres --version: %w", err)
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return binaries{}, errors.New("postgres --version prints no version")
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return binaries{}, err
	}
	if major < Oldest {
		return binaries{}, fmt.Errorf("version %d is older than %d", major, Oldest)
	}
	return binaries{dir: dir, major: major}, nil
}
