package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// build is the version that is downloaded when the machine has none.
const build = embedded.V18

// binaries is a folder with postgres and initdb of one version.
type binaries struct {
	dir     string
	major   int
	version string // as postgres prints it
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// Programs names the PostgreSQL that Start takes on this machine: its folder and its version.
func Programs(ctx context.Context) (string, error) {
	b, err := locate(ctx)
	return b.dir + " " + b.version, err
}

// locate is find with the folders of this machine.
func locate(ctx context.Context) (binaries, error) {
	cache, err := cacheDir()
	if err != nil {
		return binaries{}, err
	}
	return find(ctx, candidates(ctx), cache)
}

// find takes the first of the folders with usable programs, then the build in the cache; if there
// is none, it downloads one.
func find(ctx context.Context, dirs []string, cache string) (binaries, error) {
	home := filepath.Join(cache, "postgresql-"+string(build))
	for _, dir := range append(dirs, filepath.Join(home, "bin")) {
		if b, err := inspect(ctx, dir); err == nil {
			return b, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, err // the programs could not be asked for their version
	}
	err := download(ctx, cache, home)
	if err == nil {
		var b binaries
		if b, err = inspect(ctx, filepath.Join(home, "bin")); err == nil {
			return b, nil
		}
	}
	return binaries{}, fmt.Errorf("%w and none could be downloaded (%w): install PostgreSQL %d or "+
		"newer (apt-get install postgresql, brew install postgresql), or set "+
		"DISPATCHER_POSTGRES_URL to a server of your own", ErrNotFound, err, Oldest)
}

// candidates lists where PostgreSQL usually is, in order of preference: PATH, pg_config, and the
// folders of Debian, Red Hat and Homebrew.
func candidates(ctx context.Context) []string {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		// A link in PATH may have no initdb beside it; the real program has.
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
	return binaries{dir: dir, major: major, version: strings.TrimSpace(string(out))}, nil
}

// cacheDir is shared by all folders of a user. Root's own cache lies below /root, which the user
// that runs the server cannot enter, so root uses /var/cache.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/dispatcher", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w", err)
	}
	return filepath.Join(dir, "dispatcher"), nil
}

// download unpacks a build into a folder of its own and moves it to home in one step, so that two
// processes may download at the same time.
//
// The library offers the download only as a part of starting a server. Its server is started, if
// that works, and stopped again; as root its initdb refuses, after the programs were unpacked,
// which is enough.
func download(ctx context.Context, cache, home string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	work, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // A leftover in the cache is harmless.
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(work, "unpacked")
	defer http.DefaultClient.CloseIdleConnections() // the library leaves them open
	library := embedded.NewDatabase(embedded.DefaultConfig().
		Version(build).
		Port(uint32(port)).
		CachePath(work).
		RuntimePath(filepath.Join(work, "runtime")).
		DataPath(filepath.Join(work, "data")).
		BinariesPath(unpacked).
		StartTimeout(startTimeout).
		Logger(io.Discard))
	started := library.Start()
	if started == nil {
		started = library.Stop()
	}
	if _, err := inspect(ctx, filepath.Join(unpacked, "bin")); err != nil {
		return errors.Join(started, err)
	}
	if err := os.Rename(unpacked, home); err != nil {
		if _, other := inspect(ctx, filepath.Join(home, "bin")); other != nil {
			return fmt.Errorf("keep downloaded PostgreSQL: %w", err)
		}
	}
	return nil
}
