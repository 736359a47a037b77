package api

import "mcpproxy/internal/ops"

// The operations on the servers of MCP clients.
var (
	FindServers = declareOperation("GET /clients/servers", "findServers", Look,
		"The servers that the MCP clients of this account have, secrets masked", (*ops.ImportOperations).FindServers).withTimeout(restartTimeout)
	ImportServers = declareOperation("POST /servers/import", "importServers", Decide,
		"Take servers over from clients, or say what would be done: each has its own result", (*ops.ImportOperations).ImportServers).withTimeout(restartTimeout)
)
