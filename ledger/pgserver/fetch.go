package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// build is the version that is fetched when the machine has none.
const build = embedded.V18

// fetched returns the build in the cache, fetching it first if it is not there.
func fetched(ctx context.Context, c Config) (binaries, error) {
	cache, err := cacheDir(c)
	if err != nil {
		return binaries{}, err
	}
	home := filepath.Join(cache, "postgresql-"+string(build))
	if b, err := inspect(ctx, filepath.Join(home, "bin")); err == nil {
		return b, nil
	}
	if c.Offline {
		return binaries{}, errors.New("fetching is switched off")
	}
	if err := fetch(ctx, cache, home); err != nil {
		return binaries{}, err
	}
	return inspect(ctx, filepath.Join(home, "bin"))
}

// cacheDir is shared by all folders of a user. Root's own cache lies below /root,
// which the user that runs the server cannot enter, so root uses /var/cache.
func cacheDir(c Config) (string, error) {
	switch {
	case c.Cache != "":
		return filepath.Abs(c.Cache)
	case os.Geteuid() == 0:
		return "/var/cache/dispatcher", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w", err)
	}
	return filepath.Join(dir, "dispatcher"), nil
}

// fetch downloads and unpacks a build into a folder of its own and moves it to home
// in one step, so that two processes that fetch at the same time do no harm.
//
// The library offers the download only as a part of starting a server. Its server is
// started, if that works, and stopped again; as root its initdb refuses, after the
// programs were unpacked, which is all that is wanted.
func fetch(ctx context.Context, cache, home string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	work, err := os.MkdirTemp(cache, "fetch-")
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
	started := startLibrary(work, unpacked, port)
	if _, err := inspect(ctx, filepath.Join(unpacked, "bin")); err != nil {
		return errors.Join(started, err)
	}
	if err := os.Rename(unpacked, home); err != nil {
		if _, other := inspect(ctx, filepath.Join(home, "bin")); other != nil {
			return fmt.Errorf("keep fetched PostgreSQL: %w", err)
		}
	}
	return nil
}

// startLibrary runs the library's start and stop inside work. Only its log file, empty
// or nearly so, stays in the temporary folder, once for each fetch.
func startLibrary(work, unpacked string, port int) error {
	defer http.DefaultClient.CloseIdleConnections() // the library leaves them open
	db := embedded.NewDatabase(embedded.DefaultConfig().
		Version(build).
		Port(uint32(port)).
		CachePath(work).
		RuntimePath(filepath.Join(work, "runtime")).
		DataPath(filepath.Join(work, "data")).
		BinariesPath(unpacked).
		StartTimeout(startTimeout).
		Logger(io.Discard))
	if err := db.Start(); err != nil {
		return err
	}
	return db.Stop()
}
