package api

import "mcpproxy/internal/ops"

// The operations of the kill switch.
var (
	GetPause    = declareOperation("GET /pause", "getPause", Look, "Get whether calls are paused, by whom and why", (*ops.Admin).PauseState)
	PauseCalls  = declareOperation("POST /pause", "pauseCalls", Decide, "Pause all calls on all surfaces; held and running calls are cancelled", (*ops.Admin).PauseCalls)
	ResumeCalls = declareOperation("POST /resume", "resumeCalls", Decide, "Resume calls", (*ops.Admin).ResumeCalls)
)
