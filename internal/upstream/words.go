package upstream

import "mcpproxy/internal/problem"

var errRestart = problem.Ownf("it is being restarted")

// Bounds on what is kept for a client that does not listen.
const (
	maxKept      = 256 // events
	maxKeptBytes = 1 << 20
)
