package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/problem"
)

// socketName is the name of the socket in the data directory.
const socketName = "mcpproxy.sock"

// maxSocketPath is the longest path on every system: sun_path has 104 bytes on macOS and 108 on Linux, including a
// final zero.
const maxSocketPath = 103

// dialTimeout is long for a local socket, so that it expires only if the daemon is suspended.
const dialTimeout = 2 * time.Second

// SocketPath returns the path of the socket on which the daemon of a data directory listens for the CLI. It is
// mcpproxy.sock in the directory or, when that path is too long, a short path in a private directory. Daemon and CLI
// compute the same path.
func SocketPath(dataDir string) string {
	if absolute, err := filepath.Abs(dataDir); err == nil {
		dataDir = absolute
	}
	path := filepath.Join(dataDir, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	hash := sha256.Sum256([]byte(dataDir))
	return filepath.Join(shortSocketDir(), hex.EncodeToString(hash[:10])+".sock")
}

// ListenSocket listens on the socket, for this user only. It replaces the socket of a dead daemon, and returns an error
// if a daemon is running.
func ListenSocket(dataDir string) (net.Listener, error) {
	path := SocketPath(dataDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the socket: %w", err)
	}
	if err := checkSocketDir(path); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", path, dialTimeout); err == nil {
		_ = c.Close()
		return nil, problem.Newf(problem.Usage, "Another MCPProxy is running with the data directory %s.", dataDir).
			WithHint("Stop it first, or choose another data directory with --data-dir.")
	}
	if err := removeSocket(path); err != nil {
		return nil, err
	}
	return listenPrivately(path)
}

// DialSocket connects to the daemon that listens at the path.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	if err := checkSocketDir(path); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "unix", path)
}

// removeSocket removes path if it is a socket. It never removes another file.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("check the socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists at the path of the socket: remove it", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}

// checkSocketDir rejects the short directory if another user could create a socket in it. It does not check the data
// directory, which the user chose.
func checkSocketDir(path string) error {
	if dir := filepath.Dir(path); dir == shortSocketDir() {
		return checkPrivateDir(dir)
	}
	return nil
}
