package ledgertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFoldersOfKilledProcessesAreRemoved, and those of processes that run are not.
func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	below := t.TempDir()
	folders := map[string]bool{ // whether it stays
		fmt.Sprintf("ledgertest-%d-1", ended.Process.Pid): false,
		fmt.Sprintf("ledgertest-%d-1", os.Getpid()):       true,
		"ledgertest-other-1":                              true,
		"elsewhere-1-1":                                   true,
	}
	for name := range folders {
		if err := os.MkdirAll(filepath.Join(below, name, "pg"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(below)
	for name, stays := range folders {
		if _, err := os.Stat(filepath.Join(below, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
