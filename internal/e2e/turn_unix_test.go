//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// atOnce is how many scenarios run at a time. The suite starts all of them at once, and some of them measure time.
const atOnce = 3

// takeTurn waits for one of the slots. The slot becomes free when the process ends.
func takeTurn() error {
	name := fmt.Sprint("turn-", os.Getpid()%atOnce)
	fd, err := syscall.Open(filepath.Join(os.Getenv(commandQueue), name), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return syscall.Flock(fd, syscall.LOCK_EX)
}
