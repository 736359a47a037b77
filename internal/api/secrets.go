package api

import "mcpproxy/internal/ops"

// The operations on secrets. No answer contains a value.
var (
	ListSecrets  = declareOperation("GET /secrets", "listSecrets", Look, "List the secrets that are set or that servers need, without values", (*ops.SecretOperations).ListSecrets).withTimeout(restartTimeout)
	SetSecret    = declareOperation("PUT /secrets/{name}", "setSecret", Decide, "Store a secret; servers that need it are restarted", (*ops.SecretOperations).SetSecret).withTimeout(restartTimeout)
	DeleteSecret = declareOperation("DELETE /secrets/{name}", "deleteSecret", Decide, "Remove a secret; servers that need it are stopped", (*ops.SecretOperations).DeleteSecret).withTimeout(restartTimeout)
)
