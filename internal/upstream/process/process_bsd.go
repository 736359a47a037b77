//go:build unix && !linux

package process

import "syscall"

// groupAttr puts a process into a group of its own.
func groupAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
