package api

import "mcpproxy/internal/ops"

// The operations on agent tokens and profiles.
var (
	ListTokens    = declareOperation("GET /tokens", "listTokens", Look, "List agent tokens: scope and time of last use", (*ops.AccessOperations).Tokens)
	CreateToken   = declareOperation("POST /tokens", "createToken", Decide, "Create an agent token; only this response contains its text", (*ops.AccessOperations).CreateToken)
	RevokeToken   = declareOperation("DELETE /tokens/{name}", "revokeToken", Decide, "Revoke an agent token", (*ops.AccessOperations).RevokeToken)
	GetPresence   = declareOperation("GET /presence", "getPresence", Look, "Get the state of presence", (*ops.AccessOperations).Presence)
	SetPresence   = declareOperation("PUT /presence", "setPresence", Decide, "Set the presence anchor, signed by the previous anchor or by itself", (*ops.AccessOperations).SetPresenceAnchor).withTimeout(restartTimeout)
	JoinPresence  = declareOperation("POST /presence/join", "joinPresence", Decide, "Register the anchor with this instance, signed by the anchor", (*ops.AccessOperations).StoreMissingAnchorFingerprints).withTimeout(restartTimeout)
	ResetPresence = declareOperation("POST /presence/reset", "resetPresence", Decide, "Reset presence: all signatures become invalid, and a day later a new anchor can be set", (*ops.AccessOperations).ResetPresence).withTimeout(restartTimeout)
	KeepPresence  = declareOperation("POST /presence/reset/cancel", "cancelPresenceReset", Decide, "Cancel a reset, signed by the anchor", (*ops.AccessOperations).CancelPresenceReset).withTimeout(restartTimeout)

	ListProfiles = declareOperation("GET /profiles", "listProfiles", Look, "List the profiles, with their current servers and tools", (*ops.AccessOperations).Profiles)
)
