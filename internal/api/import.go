package api

import "mcpproxy/internal/ops"

// The operations that import servers from the configuration files of MCP clients.
var (
	FindServers = declareOperation("GET /clients/servers", "findServers", Look,
		"List the servers in the files of this account's MCP clients, with secrets masked", (*ops.ImportOperations).FindServers).withTimeout(restartTimeout)
	ImportServers = declareOperation("POST /servers/import", "importServers", Decide,
		"Import servers from clients, or preview the import; each server has its own result", (*ops.ImportOperations).ImportServers).withTimeout(restartTimeout)
)
