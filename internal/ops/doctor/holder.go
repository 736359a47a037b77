package doctor

// LockFile is the name of the file in a data directory that a running daemon has locked.
const LockFile = "daemon.lock"

// Holder is a process; the zero value is one that is not known.
type Holder struct {
	PID     int
	Name    string // as the system calls it, printable
	DataDir string // whose lock it has open, if it is a MCPProxy
}

// Known reports whether there is such a process.
func (p Holder) Known() bool { return p.PID != 0 }
