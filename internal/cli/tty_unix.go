//go:build !windows

package cli

import "os"

// openUserTerminalFiles opens the user's terminal for reading and writing.
func openUserTerminalFiles() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return f, f, err
}
