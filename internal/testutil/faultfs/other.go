//go:build !linux

package faultfs

import "errors"

var errNotLinux = errors.New("faults of file systems are made on Linux only")

// CheckAvailable returns why faults cannot be injected here.
func CheckAvailable() error { return errNotLinux }

// Mount is a mounted file system.
type Mount struct{ Dir string }

// MountTmpfs needs Linux.
func MountTmpfs(string, int64) (*Mount, error) { return nil, errNotLinux }

// MountExt4 needs Linux.
func MountExt4(string, int64) (*Mount, error) { return nil, errNotLinux }

// MakeReadOnly needs Linux.
func (m *Mount) MakeReadOnly() error { return errNotLinux }

// FailWithEIO needs Linux.
func (m *Mount) FailWithEIO() error { return errNotLinux }

// UnmountInUse needs Linux.
func (m *Mount) UnmountInUse() error { return errNotLinux }

// CheckAndRemount needs Linux.
func (m *Mount) CheckAndRemount() error { return errNotLinux }

// UnmountAndRepair needs Linux.
func (m *Mount) UnmountAndRepair() error { return errNotLinux }

// FillUp needs Linux.
func (m *Mount) FillUp() error { return errNotLinux }

// RemoveFiller needs Linux.
func (m *Mount) RemoveFiller() error { return errNotLinux }

// Close does nothing.
func (m *Mount) Close() error { return nil }

// SyscallFaults is a process whose system calls fail.
type SyscallFaults struct{}

// InjectSyscallFaults needs Linux.
func InjectSyscallFaults(int, string, ...string) (*SyscallFaults, error) { return nil, errNotLinux }

// Stop does nothing.
func (i *SyscallFaults) Stop() error { return nil }
