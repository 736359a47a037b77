package api

import "mcpproxy/internal/access"

// Agent tokens and profiles.
var (
	ListTokens   = declare("GET /tokens", "listTokens", Look, "The agent tokens: what each may reach, and when it was last used", (*access.Access).Tokens)
	CreateToken  = declare("POST /tokens", "createToken", Decide, "Make an agent token; its text is in this answer alone", (*access.Access).CreateToken)
	RevokeToken  = declare("DELETE /tokens/{name}", "revokeToken", Decide, "Revoke an agent token: it is good for nothing from now on", (*access.Access).RevokeToken)
	ListProfiles = declare("GET /profiles", "listProfiles", Look, "The profiles of the configuration, and what is in each now", (*access.Access).Profiles)
)
