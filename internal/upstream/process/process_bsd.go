//go:build unix && !linux

package process

import "syscall"

// newProcessGroupAttr puts a process into its own group.
func newProcessGroupAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
