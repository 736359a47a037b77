//go:build !linux

package holder

import (
	"net"
	"strconv"
	"time"
)

// patience is how long a listener on this machine has to take a connection.
const patience = 300 * time.Millisecond

// OfPort reports whether somebody on this machine listens on a TCP port. Who does, this
// system does not tell.
func OfPort(port uint16) (p Process, taken bool) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), patience)
	if err != nil {
		return Process{}, false
	}
	_ = c.Close()
	return Process{}, true
}

// OfFile finds nothing: this system does not tell.
func OfFile(string, ...int) Process { return Process{} }

// Executable is not known here.
func Executable(int) string { return "" }
