package api

import "mcpproxy/internal/ops"

// Agent tokens and profiles.
var (
	ListTokens    = declareOperation("GET /tokens", "listTokens", Look, "List agent tokens: scope and time of last use", (*ops.AccessOperations).Tokens)
	CreateToken   = declareOperation("POST /tokens", "createToken", Decide, "Make an agent token; its text is in this answer alone", (*ops.AccessOperations).CreateToken)
	RevokeToken   = declareOperation("DELETE /tokens/{name}", "revokeToken", Decide, "Revoke an agent token: it is good for nothing from now on", (*ops.AccessOperations).RevokeToken)
	GetPresence   = declareOperation("GET /presence", "getPresence", Look, "Get the state of presence", (*ops.AccessOperations).Presence)
	SetPresence   = declareOperation("PUT /presence", "setPresence", Decide, "Set the presence anchor, signed by the previous anchor or by itself", (*ops.AccessOperations).SetPresenceAnchor).withTimeout(restartTimeout)
	JoinPresence  = declareOperation("POST /presence/join", "joinPresence", Decide, "Register the anchor with this instance, signed by the anchor", (*ops.AccessOperations).StoreMissingAnchorFingerprints).withTimeout(restartTimeout)
	ResetPresence = declareOperation("POST /presence/reset", "resetPresence", Decide, "Make everything that was signed void; a day later another anchor can be set", (*ops.AccessOperations).ResetPresence).withTimeout(restartTimeout)
	KeepPresence  = declareOperation("POST /presence/reset/cancel", "cancelPresenceReset", Decide, "Call a reset off: the anchor signs that", (*ops.AccessOperations).CancelPresenceReset).withTimeout(restartTimeout)

	ListProfiles = declareOperation("GET /profiles", "listProfiles", Look, "List the profiles, with their current servers and tools", (*ops.AccessOperations).Profiles)
)
