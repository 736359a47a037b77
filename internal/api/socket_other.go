//go:build !unix

package api

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// shortSocketDir returns a directory inside the user's own temporary directory.
func shortSocketDir() string { return filepath.Join(os.TempDir(), "mcpproxy") }

// checkPrivateDir does nothing, because the directory is inside the user's own temporary directory.
func checkPrivateDir(string) error { return nil }

func listenPrivately(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	return l, nil
}
