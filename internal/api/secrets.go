package api

import "mcpproxy/internal/settings"

// The operations on secrets. No answer has a value.
var (
	ListSecrets  = declare("GET /secrets", "listSecrets", Look, "The secrets that were set and those that servers need, without values", (*settings.Settings).ListSecrets).within(restartPatience)
	SetSecret    = declare("PUT /secrets/{name}", "setSecret", Decide, "Store a secret; servers that need it are restarted", (*settings.Settings).SetSecret).within(restartPatience)
	DeleteSecret = declare("DELETE /secrets/{name}", "deleteSecret", Decide, "Remove a secret; servers that need it are stopped", (*settings.Settings).DeleteSecret).within(restartPatience)
)
