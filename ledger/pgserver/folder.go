package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// rootHome is where a cluster is put when its folder is below one that only root may enter.
const rootHome = "/var/lib/dispatcher"

// folder is the layout of Config.Dir.
type folder struct{ dir string }

func (f folder) data() string     { return filepath.Join(f.dir, "data") }
func (f folder) log() string      { return filepath.Join(f.dir, "server.log") }
func (f folder) password() string { return filepath.Join(f.dir, "pgpass") }

// prepare creates the folder and makes sure that the server's user can reach it.
//
// Root's folders are often closed to all other users: /root itself, or a temporary folder. A closed
// folder below the temporary folder gets the x permission for all, but not r. Permissions of other
// folders are not changed: the cluster is put into a folder in elsewhere, and dir becomes a link to
// it.
func prepare(dir, elsewhere string) (folder, error) {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if _, err := os.Stat(dir); err != nil {
			if err := os.Remove(dir); err != nil { // a link to a cluster that was deleted
				return folder{}, fmt.Errorf("remove stale link: %w", err)
			}
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return folder{}, fmt.Errorf("make folder: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return folder{}, err
	}
	f := folder{dir: real}
	id, err := chooseIdentity(f.data())
	if err != nil {
		return f, err
	}
	if err := id.shut(real); err != nil || !id.switched {
		return f, err
	}
	open, err := openPath(id, real)
	if err != nil || open {
		return f, err
	}
	return moveAway(id, real, elsewhere)
}

// openPath reports whether id can reach dir. It first adds the x permission to folders below the
// temporary folder.
func openPath(id identity, dir string) (bool, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	for ; ; real = filepath.Dir(real) {
		info, err := os.Stat(real)
		if err != nil {
			return false, err
		}
		if !id.mayEnter(info) {
			if !strings.HasPrefix(real, filepath.Clean(os.TempDir())+string(filepath.Separator)) {
				return false, nil
			}
			if err := os.Chmod(real, info.Mode().Perm()|0o111); err != nil {
				return false, fmt.Errorf("open folder for %s: %w", id.name, err)
			}
		}
		if real == filepath.Dir(real) {
			return true, nil
		}
	}
}

// moveAway puts the cluster into a new folder in elsewhere, and makes dir, which must still be
// empty, a link to it.
func moveAway(id identity, dir, elsewhere string) (folder, error) {
	if err := os.Remove(dir); err != nil {
		return folder{}, fmt.Errorf("the user that runs PostgreSQL may not enter %s: "+
			"choose a folder that every user may pass through with DISPATCHER_DATA_DIR", dir)
	}
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		return folder{}, fmt.Errorf("make folder: %w", err)
	}
	real, err := os.MkdirTemp(elsewhere, "postgresql-")
	if err != nil {
		return folder{}, fmt.Errorf("make folder: %w", err)
	}
	if err := id.shut(real); err != nil {
		return folder{}, err
	}
	if err := os.Symlink(real, dir); err != nil {
		return folder{}, fmt.Errorf("link folder: %w", err)
	}
	return folder{dir: real}, nil
}

// checkOwner returns an error for a cluster that this process could not start.
func (f folder) checkOwner(id identity) error {
	uid, _, ok := owner(f.data())
	if !ok || uid == id.uid || id.switched {
		return nil
	}
	return fmt.Errorf("folder %s belongs to uid %d and this process runs as uid %d: start the "+
		"dispatcher as that user, give the folder away (chown -R) or choose another one with "+
		"DISPATCHER_DATA_DIR", f.data(), uid, id.uid)
}
