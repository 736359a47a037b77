package transport

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestNoNetwork checks that an error without a network has its own code, and that a name that does not exist differs
// from a name that cannot be resolved.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}, Err: os.NewSyscallError("connect", errno)}
	}
	for name, c := range map[string]struct {
		err        error
		code, says string
	}{
		"no way":              {dial(syscall.ENETUNREACH), Unreachable, "is the network down?"},
		"no way to the host":  {dial(syscall.EHOSTUNREACH), Unreachable, "is the network down?"},
		"no resolver answers": {&net.DNSError{Name: "a.example", Err: "server misbehaving", IsTemporary: true}, UnknownHost, "cannot be resolved, is the network down?"},
		"a lookup that hangs": {&net.DNSError{Name: "a.example", Err: "i/o timeout", IsTimeout: true}, UnknownHost, "cannot be resolved, is the network down?"},
		"a name that is none": {&net.DNSError{Name: "a.example", Err: "no such host", IsNotFound: true}, UnknownHost, "is not known"},
		"a closed port":       {dial(syscall.ECONNREFUSED), Unreachable, "nothing answers"},
	} {
		got := ClassifyFailure(fmt.Errorf("connect: %w", c.err))
		if got.Code != c.code || !strings.Contains(got.Said, c.says) || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
