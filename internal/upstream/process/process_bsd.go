//go:build unix && !linux

package process

import "syscall"

// newGroupAttr puts a process into its own group.
func newGroupAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
