//go:build !linux

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

const selfProgram = ""

func probeSupport() machineSupport { return machineSupport{os: runtime.GOOS} }

func isolate(*syscall.SysProcAttr, bool) {}

// Exec reports that this system has no sandbox.
func Exec([]string) int {
	fmt.Fprintln(os.Stderr, "Error: "+ExecCommand+" needs Linux.")
	return 1
}
