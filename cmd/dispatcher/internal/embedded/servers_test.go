package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTheDataFolderIsClosedToOtherUsers: an existing folder with wider rights, too.
func TestTheDataFolderIsClosedToOtherUsers(t *testing.T) {
	t.Parallel()
	closed := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		closed = 0o711 // the user that PostgreSQL runs as must pass through
	}
	top := t.TempDir()
	for name, c := range map[string]struct{ was, want os.FileMode }{
		"open":       {0o755, closed},
		"writable":   {0o777, closed},
		"of a group": {os.ModeSetgid | 0o770, os.ModeSetgid | closed&0o710},
		"closed":     {0o700, 0o700}, // rights are not widened
		"shared":     {os.ModeSticky | 0o777, os.ModeSticky | 0o777},
	} {
		path := filepath.Join(top, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.was); err != nil {
			t.Fatal(err)
		}
		if err := closedFolder(path); err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeDir|c.want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, os.ModeDir|c.want)
		}
	}
	fresh := filepath.Join(top, "a", "new")
	if err := closedFolder(fresh); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm()&^closed != 0 {
		t.Errorf("a new one: %v, %v", info.Mode(), err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink("none", link); err != nil {
		t.Fatal(err)
	}
	if err := closedFolder(link); err == nil {
		t.Error("a broken link counts as a folder")
	}
}
