//go:build unix

package process

import (
	"os"
	"syscall"
)

// newNonblockingWriteFunc returns a function that writes what the pipe f takes without
// blocking.
func newNonblockingWriteFunc(f *os.File) func([]byte) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return func([]byte) (int, error) { return 0, err }
	}
	var (
		batch []byte
		n     int
		wrong error
	)
	write := func(fd uintptr) bool {
		for n < len(batch) {
			k, err := syscall.Write(int(fd), batch[n:])
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				return true
			case err != nil:
				wrong = err
				return true
			}
			n += k
		}
		return true
	}
	return func(b []byte) (int, error) {
		batch, n, wrong = b, 0, nil
		if err := raw.Write(write); err != nil {
			return 0, err
		}
		batch = nil
		return n, wrong
	}
}
