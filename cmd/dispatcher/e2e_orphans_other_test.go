//go:build !linux

package main

import "syscall"

// dieWithTest has no counterpart here.
func dieWithTest(*syscall.SysProcAttr) {}
