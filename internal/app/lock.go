package app

import (
	"errors"

	"mcpproxy/internal/problem"
)

// lockName is the file that a running daemon has locked.
const lockName = "daemon.lock"

// ErrInUse is the cause of the problem that another daemon has the data
// directory.
var ErrInUse = errors.New("the data directory is in use")

func inUse(dir string) error {
	return problem.Newf(problem.InvalidConfig, "Another MCPProxy uses the data directory %s.", dir).
		WithHint("See it with `mcpproxy status`, stop it, or give this one its own --data-dir.").Because(ErrInUse)
}

func unwritable(err error) error {
	return problem.Newf(problem.InvalidConfig, "The data directory cannot be written: %v", err).
		WithHint("Choose another one with --data-dir or MCPPROXY_DATA_DIR.")
}
