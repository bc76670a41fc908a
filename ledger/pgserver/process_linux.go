package pgserver

import "syscall"

// dieWithParent has the kernel send SIGINT, a fast shutdown, when the starting process dies in
// whatever way. Go sets it after the credentials, which would clear it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
