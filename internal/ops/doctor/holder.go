package doctor

// LockFile is the file in a data directory that a running daemon locks.
const LockFile = "daemon.lock"

// Holder is a process; the zero value is unknown.
type Holder struct {
	PID     int
	Name    string // the system's name, printable
	DataDir string // the data directory that it has locked, if it is an MCPProxy
}

// IsKnown reports whether there is such a process.
func (p Holder) IsKnown() bool { return p.PID != 0 }
