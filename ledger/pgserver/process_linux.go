package pgserver

import "syscall"

// dieWithParent has the kernel send SIGINT, a fast shutdown, however the starting process dies. Go
// sets it after the credentials, which would clear it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
