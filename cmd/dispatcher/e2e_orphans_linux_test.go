package main

import "syscall"

// dieWithTest makes the kernel kill a process when the test process dies, even if the test run is
// cut off by its timeout.
func dieWithTest(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
