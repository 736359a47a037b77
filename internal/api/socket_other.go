//go:build !unix

package api

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// shortSocketDir is in the user's own directory of temporary files.
func shortSocketDir() string { return filepath.Join(os.TempDir(), "mcpproxy") }

// checkPrivateDir has nothing to check: the directory is inside the user's own.
func checkPrivateDir(string) error { return nil }

func listenPrivately(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	return l, nil
}
