package sandbox

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ExecCommand {
		os.Exit(Exec(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == escapeCommand {
		attemptEscapes()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
