package app

import (
	"errors"
	"path/filepath"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
)

// ErrInUse is the cause of a problem: another daemon uses the data directory.
var ErrInUse = errors.New("the data directory is in use")

// lockDir locks the data directory for one daemon. The lock ends with the process, so a crash leaves none behind.
func lockDir(dir string) (release func() error, err error) {
	f, err := ondisk.LockFile(filepath.Join(dir, doctor.LockFile))
	switch {
	case err == nil:
		return f.Close, nil
	case errors.Is(err, ondisk.ErrLocked):
		return nil, problem.Newf(problem.InvalidConfig, "Another MCPProxy uses the data directory %s.", dir).
			WithHint("To see it, run `mcpproxy status`. Stop it, or choose another data directory with --data-dir.").Because(ErrInUse)
	}
	return nil, problem.Newf(problem.InvalidConfig, "The data directory cannot be written: %v", err).
		WithHint("Choose another data directory with --data-dir or MCPPROXY_DATA_DIR.")
}
