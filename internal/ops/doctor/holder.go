package doctor

import (
	"os"
	"path/filepath"
)

// LockFile is the file in a data directory that a running daemon locks.
const LockFile = "daemon.lock"

// Holder is a process that uses a port, a file or a data directory. The zero value means unknown.
type Holder struct {
	PID     int
	Name    string // process name, made printable
	DataDir string // the data directory that it locks, if it is an MCPProxy daemon
}

// IsKnown reports whether the process was found.
func (p Holder) IsKnown() bool { return p.PID != 0 }

// existingParent returns dir if it exists, otherwise its nearest existing parent.
func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
