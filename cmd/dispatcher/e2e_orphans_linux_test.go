package main

import "syscall"

// dieWithTest has the kernel kill a process when the test that started it dies in
// whatever way, so that not even a test run cut off by its deadline leaves one behind.
func dieWithTest(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
