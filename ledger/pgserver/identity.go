package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is the user that the server's programs run as. PostgreSQL refuses to run as root; for
// any other user the programs simply run as that user.
type identity struct {
	uid, gid uint32
	name     string
	switched bool // the programs need other credentials than this process has
}

// chooseIdentity keeps the owner of an existing cluster, so that a folder continues to work when a
// user postgres is added to the machine later.
func chooseIdentity(data string) (identity, error) {
	if euid := os.Geteuid(); euid != 0 {
		return identity{
			uid: uint32(euid), gid: uint32(os.Getegid()), name: "uid " + strconv.Itoa(euid),
		}, nil
	}
	if uid, gid, ok := owner(data); ok && uid != 0 {
		return identity{uid, gid, fmt.Sprintf("uid %d", uid), true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return identity{uint32(uid), uint32(gid), name, true}, nil
		}
	}
	return identity{}, errors.New(
		"PostgreSQL refuses to run as root and there is neither a user postgres nor nobody " +
			"to run it as: add one (useradd --system postgres) or start the dispatcher as " +
			"another user")
}

// owner is the owner of a file; false when there is no such file.
func owner(path string) (uid, gid uint32, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Uid, st.Gid, true
}

// credential is what a program is started with; nil for those of this process.
func (id identity) credential() *syscall.Credential {
	if !id.switched {
		return nil
	}
	return &syscall.Credential{Uid: id.uid, Gid: id.gid}
}

// own gives everything below dir to the identity. Only root can do that and only root needs to.
func (id identity) own(dir string) error {
	if !id.switched {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(id.uid), int(id.gid))
	})
	if err != nil {
		return fmt.Errorf("give folder to %s: %w", id.name, err)
	}
	return nil
}

// shut closes a folder to everybody but the identity and root: the cluster holds numbers and texts
// of messages.
func (id identity) shut(dir string) error {
	if id.switched {
		if err := os.Lchown(dir, int(id.uid), int(id.gid)); err != nil {
			return fmt.Errorf("give folder to %s: %w", id.name, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close folder to others: %w", err)
	}
	return nil
}

// mayEnter reports whether the identity may pass through a folder on the way to something inside
// it.
func (id identity) mayEnter(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid == id.uid:
		return mode&0o100 != 0
	case st.Gid == id.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}
