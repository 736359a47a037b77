package api

import (
	"mcpproxy/internal/ops"
)

// Simulations: they call, record and change nothing.
var (
	TryPolicy = declareOperation("POST /policy/try", "tryPolicy", Look,
		"What a changed configuration would have done to the calls on record", (*ops.TrialOperations).SimulateConfig).withTimeout(0)
	Can = declareOperation("POST /can", "can", Look,
		"What would become of a call of a client, profile or token now, in each lane", (*ops.Explainer).Explain)
)
