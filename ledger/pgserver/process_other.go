//go:build unix && !linux

package pgserver

import "syscall"

// dieWithParent does nothing on these systems: after a SIGKILL of the dispatcher the server runs
// on, and the next start over the same folder reports that it is in use.
func dieWithParent(*syscall.SysProcAttr) {}
