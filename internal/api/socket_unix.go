//go:build unix

package api

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// shortSocketDir returns the same directory for all processes of the user, because it does not depend on the
// environment.
func shortSocketDir() string { return filepath.Join("/tmp", "mcpproxy-"+strconv.Itoa(os.Geteuid())) }

// checkPrivateDir checks that only the user can access the directory.
func checkPrivateDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the directory of the socket: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a directory of this user alone: remove it, or use a shorter data directory", dir)
	}
	return nil
}

// listenPrivately listens on a socket that other users can never open. It sets the mode under a random name, then
// renames the socket.
func listenPrivately(path string) (net.Listener, error) {
	hidden := filepath.Join(filepath.Dir(path), ".s"+strconv.Itoa(os.Getpid()))
	_ = os.Remove(hidden)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(hidden, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("make the socket private: %w", err)
	}
	if err := os.Rename(hidden, path); err != nil {
		_ = l.Close()
		_ = os.Remove(hidden)
		return nil, fmt.Errorf("move the socket to its path: %w", err)
	}
	return &socketListener{l, path}, nil
}

// socketListener removes its path when it closes.
type socketListener struct {
	*net.UnixListener
	path string
}

// Addr returns the final path of the socket.
func (l *socketListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close implements net.Listener.
func (l *socketListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		_ = os.Remove(l.path)
	}
	return err
}
