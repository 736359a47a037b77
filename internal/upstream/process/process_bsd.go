//go:build unix && !linux

package process

import "syscall"

// groupAttr puts a process into its own group.
func groupAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
