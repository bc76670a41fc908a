//go:build unix

package main

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another, so that an administrator who rotates the keys of a
// service does not lock the service out of them.
func keepOwner(file *os.File, like os.FileInfo) error {
	owner, ok := like.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return file.Chown(int(owner.Uid), int(owner.Gid))
}
