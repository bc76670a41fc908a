//go:build unix && !linux

package pgserver

import "syscall"

// dieWithParent has no counterpart here: after a SIGKILL of the dispatcher the server
// runs on until the next start over the same folder, which says so.
func dieWithParent(*syscall.SysProcAttr) {}
