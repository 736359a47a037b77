// Package holder finds out which process has something that another one needs: a
// port, a file, the lock of a data directory.
//
// It guarantees that it changes nothing and returns soon, and that what it says of a
// process was so when it looked. It sees those processes only whose open files this user
// may see, and on Linux alone: elsewhere it finds out that somebody listens, by a
// connection that says nothing, and says of the rest that it does not know. It judges
// nobody: whether a process may have what it has is for the caller to say.
package holder

// Lock is the name of the file in a data directory that a running daemon has locked.
const Lock = "daemon.lock"

// Process is a process; the zero value is one that is not known.
type Process struct {
	PID     int
	Name    string // as the system calls it, printable
	DataDir string // whose lock it has open, if it is a MCPProxy
}

// Known reports whether there is such a process.
func (p Process) Known() bool { return p.PID != 0 }
