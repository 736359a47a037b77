//go:build !linux

package doctor

import (
	"net"
	"strconv"
	"time"
)

// patience is how long a listener on this machine has to take a connection.
const patience = 300 * time.Millisecond

// HolderOfPort reports whether somebody on this machine listens on a TCP port. Who does, this
// system does not tell.
func HolderOfPort(port uint16) (p Holder, taken bool) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), patience)
	if err != nil {
		return Holder{}, false
	}
	_ = c.Close()
	return Holder{}, true
}

// HolderOfFile finds nothing: this system does not tell.
func HolderOfFile(string, ...int) Holder { return Holder{} }

// Executable is not known here.
func Executable(int) string { return "" }
