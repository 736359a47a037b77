//go:build unix && !linux

package upstream

import "syscall"

// groupAttr puts a process into a group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
