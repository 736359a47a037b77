package api

import "mcpproxy/internal/ops"

// Agent tokens and profiles.
var (
	ListTokens    = declareOperation("GET /tokens", "listTokens", Look, "The agent tokens: what each may reach, and when it was last used", (*ops.AccessOperations).Tokens)
	CreateToken   = declareOperation("POST /tokens", "createToken", Decide, "Make an agent token; its text is in this answer alone", (*ops.AccessOperations).CreateToken)
	RevokeToken   = declareOperation("DELETE /tokens/{name}", "revokeToken", Decide, "Revoke an agent token: it is good for nothing from now on", (*ops.AccessOperations).RevokeToken)
	GetPresence   = declareOperation("GET /presence", "getPresence", Look, "How it is proven that a person decides, and whether that holds", (*ops.AccessOperations).Presence)
	SetPresence   = declareOperation("PUT /presence", "setPresence", Decide, "Set what proves that a person decides: the anchor before it signs that, or itself", (*ops.AccessOperations).SetPresenceAnchor).withTimeout(restartTimeout)
	JoinPresence  = declareOperation("POST /presence/join", "joinPresence", Decide, "Have the anchor be known to this instance: it signs that", (*ops.AccessOperations).StoreMissingAnchorFingerprints).withTimeout(restartTimeout)
	ResetPresence = declareOperation("POST /presence/reset", "resetPresence", Decide, "Make everything that was signed void; a day later another anchor can be set", (*ops.AccessOperations).ResetPresence).withTimeout(restartTimeout)
	KeepPresence  = declareOperation("POST /presence/reset/cancel", "cancelPresenceReset", Decide, "Call a reset off: the anchor signs that", (*ops.AccessOperations).CancelPresenceReset).withTimeout(restartTimeout)

	ListProfiles = declareOperation("GET /profiles", "listProfiles", Look, "The profiles of the configuration, and what is in each now", (*ops.AccessOperations).Profiles)
)
