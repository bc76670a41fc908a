package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/config"
)

func TestKeysNewMakesAFileThatOnlyItsOwnerReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "draw.key")
	got := dispatcher(t, "", []string{}, "keys", "new", path, "--format", "json")
	ring := decoded[keyRing](t, got)
	keys, err := config.DrawKeys(path)
	if err != nil || got.code != exitOK || len(ring.Keys) != 1 || ring.Added != keys[0].ID() {
		t.Fatalf("%+v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestKeysNewTouchesNoFileThatIsThere(t *testing.T) {
	t.Parallel()
	old := strings.Repeat("02", 32) + "\n"
	path := write(t, "draw.key", old)
	got := dispatcher(t, "", []string{"DISPATCHER_DRAW_KEY_FILE=" + path}, "keys", "new")
	content, err := os.ReadFile(path)
	if err != nil || string(content) != old || got.code != exitFailed ||
		!strings.Contains(got.err, "is there already") {
		t.Errorf("%+v, %v", got, err)
	}
	got = dispatcher(t, "", []string{}, "keys", "new")
	if got.code != exitUsage || !strings.Contains(got.err, "name the file to make") {
		t.Errorf("%+v", got)
	}
}
