//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives a file the owner, group and mode of another, so that an administrator who changes
// the keys of a service does not lock the service out of them. Nobody else may read them.
func keepOwner(file *os.File, like os.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	want, has := like.Sys().(*syscall.Stat_t), info.Sys().(*syscall.Stat_t)
	if has.Uid != want.Uid || has.Gid != want.Gid {
		err = file.Chown(int(want.Uid), int(want.Gid))
	}
	return errors.Join(err, file.Chmod(like.Mode().Perm()&0o640))
}
