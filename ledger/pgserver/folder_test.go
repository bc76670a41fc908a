package pgserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Root starts the server as another user, who may not enter root's own folders. For anybody else
// every folder that can be made can be used.
func TestAFolderBehindAClosedOneMovesAway(t *testing.T) {
	closed, elsewhere := filepath.Join(t.TempDir(), "closed"), t.TempDir()
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", elsewhere) // closed is not a temporary folder
	dir := filepath.Join(closed, "data", "postgres")
	for range 2 { // the second time it is there
		f, err := prepare(dir, elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		moved := strings.HasPrefix(f.dir, elsewhere)
		if root := os.Geteuid() == 0; moved != root {
			t.Errorf("root %t, moved %t", root, moved)
		}
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != f.dir {
			t.Errorf("%s leads to %s, %v", dir, real, err)
		}
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
}

func TestAClosedTemporaryFolderIsOpenedForPassingThrough(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "postgres")
	f, err := prepare(dir, "/nonexistent")
	if err != nil || f.dir != dir {
		t.Fatalf("%s, %v", f.dir, err)
	}
	want := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		want = 0o711
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != want {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
}

func TestAFolderWithContentThatCannotBeReachedIsRefusedInWords(t *testing.T) {
	closed, elsewhere := filepath.Join(t.TempDir(), "closed"), t.TempDir()
	dir := filepath.Join(closed, "postgres")
	if err := os.MkdirAll(filepath.Join(dir, "precious"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", elsewhere)
	_, err := prepare(dir, elsewhere)
	if root := os.Geteuid() == 0; root != (err != nil &&
		strings.Contains(err.Error(), "DISPATCHER_DATA_DIR")) {
		t.Errorf("got %v", err)
	}
}

func TestADownloadedBuildIsFoundInTheCache(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	bin := filepath.Join(cache, "postgresql-"+string(build), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 18.3'\n")
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(bin, program), script, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := find(t.Context(), []string{t.TempDir()}, cache)
	if err != nil || b.major != 18 || b.dir != bin {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestWithoutProgramsAndDownloadTheErrorSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := find(t.Context(), nil, filepath.Join(file, "cache")) // cannot be made
	if !errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("got %v", err)
	}
}

// TestAnInterruptedSearchDownloadsNothing: programs that could not be asked for their version
// because the caller has gone are not missing.
func TestAnInterruptedSearchDownloadsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache := filepath.Join(t.TempDir(), "cache")
	_, err := find(ctx, candidates(t.Context()), cache)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(cache); err == nil {
		t.Error("a build was downloaded, or begun to be")
	}
}
