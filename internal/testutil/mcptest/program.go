package mcptest

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that will be executed. A process that the test starts at the same time would inherit the open file
// until its own exec, and the system refuses to execute a file that is open for writing (ETXTBSY), so WriteProgram prevents the
// start of processes in the meantime.
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o755)
}
