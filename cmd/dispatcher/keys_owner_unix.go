//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives a file the owner, group and mode of another, so that an administrator who changes
// the keys of a service does not lock the service out of them. Nobody else may read them, and the
// group may not write them.
func keepOwner(file *os.File, like os.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	want, has := like.Sys().(*syscall.Stat_t), info.Sys().(*syscall.Stat_t)
	mode := like.Mode().Perm() & 0o640
	if has.Uid != want.Uid || has.Gid != want.Gid && mode&0o040 != 0 {
		err = file.Chown(int(want.Uid), int(want.Gid))
	}
	if info.Mode().Perm() != mode {
		err = errors.Join(err, file.Chmod(mode))
	}
	return err
}
