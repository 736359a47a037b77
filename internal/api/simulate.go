package api

import (
	"mcpproxy/internal/ops"
)

// The operations that simulate a decision. They call, record and change nothing.
var (
	TryPolicy = declareOperation("POST /policy/try", "tryPolicy", Look,
		"Evaluate recorded calls under a changed configuration", (*ops.TrialOperations).SimulateConfig).withTimeout(0)
	Can = declareOperation("POST /can", "can", Look,
		"Evaluate a call of a client, profile or token in each lane", (*ops.Explainer).Explain)
)
