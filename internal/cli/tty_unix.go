//go:build !windows

package cli

import "os"

// openTerminal opens the terminal that the person is at: to read from, and to write to.
func openTerminal() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return f, f, err
}
