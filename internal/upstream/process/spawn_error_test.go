//go:build unix

package process

import (
	"io/fs"
	"os/exec"
	"syscall"
	"testing"
)

func TestReasonOfASpawnError(t *testing.T) {
	for reason, err := range map[string]error{
		"not found":                              &exec.Error{Name: "x", Err: exec.ErrNotFound},
		"not executable":                         &fs.PathError{Op: "fork/exec", Path: "/x", Err: syscall.EACCES},
		"not startable (text file busy)":         &fs.PathError{Op: "fork/exec", Path: "/x", Err: syscall.ETXTBSY},
		"not startable (argument list too long)": &fs.PathError{Op: "fork/exec", Path: "/x", Err: syscall.E2BIG},
	} {
		if got := (&SpawnError{err: err}).Reason(); got != reason {
			t.Errorf("%v: %q, want %q", err, got, reason)
		}
	}
}
