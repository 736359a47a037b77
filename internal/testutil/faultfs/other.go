//go:build !linux

package faultfs

import "errors"

var errNotHere = errors.New("faults of file systems are made on Linux only")

// Available returns why faults cannot be injected here.
func Available() error { return errNotHere }

// Mount is a mounted file system.
type Mount struct{ Dir string }

// Tmpfs needs Linux.
func Tmpfs(string, int64) (*Mount, error) { return nil, errNotHere }

// Ext4 needs Linux.
func Ext4(string, int64) (*Mount, error) { return nil, errNotHere }

// Abort needs Linux.
func (m *Mount) Abort() error { return errNotHere }

// Shutdown needs Linux.
func (m *Mount) Shutdown() error { return errNotHere }

// Away needs Linux.
func (m *Mount) Away() error { return errNotHere }

// Back needs Linux.
func (m *Mount) Back() error { return errNotHere }

// Repair needs Linux.
func (m *Mount) Repair() error { return errNotHere }

// Fill needs Linux.
func (m *Mount) Fill() error { return errNotHere }

// Unfill needs Linux.
func (m *Mount) Unfill() error { return errNotHere }

// Close does nothing.
func (m *Mount) Close() error { return nil }

// Injection is a process whose system calls fail.
type Injection struct{}

// Inject needs Linux.
func Inject(int, string, ...string) (*Injection, error) { return nil, errNotHere }

// Stop does nothing.
func (i *Injection) Stop() error { return nil }
