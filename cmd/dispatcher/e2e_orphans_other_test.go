//go:build !linux

package main

import "syscall"

// dieWithTest does nothing on other systems.
func dieWithTest(*syscall.SysProcAttr) {}
