package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config/tier"
)

// TestEmbeddedFilesAreClosedToOtherUsers: records and tables hold numbers and texts of messages.
// The folders of an earlier build are closed too.
func TestEmbeddedFilesAreClosedToOtherUsers(t *testing.T) {
	t.Parallel()
	folder := openFolder(t)
	data := filepath.Join(folder, "data")
	older := filepath.Join(folder, "older")
	for _, made := range []string{
		older, filepath.Join(older, "kafka"), filepath.Join(older, "postgres"),
	} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range tier.Size([]string{older}, []string{data, older}) {
		settings := map[string]string{
			"DATA_DIR": dir, "LISTEN": "127.0.0.1:0", "RECEIPTS_LISTEN": "127.0.0.1:0",
		}
		p := launch(t, "run --embedded", folder, settings, "run", "--embedded", "--kafka-port", "0",
			"--postgres-port", "0")
		p.says(t, "dispatcher is running")
		send := launch(t, "send", folder, map[string]string{"DATA_DIR": dir}, "send",
			"--to", "+447700900123", "--text", "Hello")
		if code := send.wait(t, stepTimeout); code != exitOK {
			t.Errorf("send ended with %d: %s", code, send.out)
		}
		if _, ok := embedded.ReadEndpoints(dir); !ok {
			t.Error("the files are somewhere else")
		}
		open, seen := openFiles(t, dir)
		for _, line := range open {
			t.Error(line)
		}
		if seen < 20 {
			t.Errorf("only %d files were looked at", seen)
		}
		p.stop(t)
		want := os.FileMode(0o700)
		if os.Geteuid() == 0 {
			want = 0o711 // the user that PostgreSQL runs as passes through
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("the data folder %s: %v, %v, want %v", dir, info.Mode(), err, want)
		}
	}
}

// openFiles are those below a folder that other users may read, write or enter, and how many there
// are in all. Sockets are guarded by their folder.
func openFiles(t *testing.T, dir string) (open []string, seen int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // PostgreSQL removes files at any moment
		}
		if err != nil || path == dir || entry.Type()&(fs.ModeSocket|fs.ModeSymlink) != 0 {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if seen++; err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s is open to others: %s", path, info.Mode()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return open, seen
}
