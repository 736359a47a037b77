//go:build !linux

package doctor

import (
	"net"
	"path/filepath"
	"strconv"
	"time"
)

// dialTimeout is the maximum time for a local listener to accept a connection.
const dialTimeout = 300 * time.Millisecond

// FindPortHolder reports whether a process listens on a TCP port. It cannot identify the process on this system.
func FindPortHolder(port uint16) (p Holder, taken bool) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), dialTimeout)
	if err != nil {
		return Holder{}, false
	}
	_ = c.Close()
	return Holder{}, true
}

// FindFileHolder always returns the zero value, because it is not implemented for this system.
func FindFileHolder(string, ...int) Holder { return Holder{} }

// ExecutableOf always returns "", because it is not implemented for this system.
func ExecutableOf(int) string { return "" }

// mountPoint returns the directory of a path, because finding the mount point is not implemented for this system.
func mountPoint(path string) string { return filepath.Dir(path) }
