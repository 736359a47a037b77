package api

import "mcpproxy/internal/ops"

// The operations on the MCP clients of the user account that runs MCPProxy.
var (
	ListClients = declareOperation("GET /clients", "listClients", Look,
		"List the MCP clients: installed, connected, and their permission rules for MCPProxy's tools", (*ops.ClientOperations).ListClients)
	ConnectClient = declareOperation("POST /clients/{client}/connect", "connectClient", Decide,
		"Add MCPProxy to a client's file, or preview the change", (*ops.ClientOperations).ConnectClient)
	DisconnectClient = declareOperation("POST /clients/{client}/disconnect", "disconnectClient", Decide,
		"Remove MCPProxy from a client's file, or preview the change", (*ops.ClientOperations).DisconnectClient)
	UndoClientChange = declareOperation("POST /clients/undo", "undoClientChange", Decide,
		"Undo a change of a client's file; if the file was changed since, only the entries of the change are restored", (*ops.ClientOperations).UndoClientChange)
	WritePermissions = declareOperation("POST /clients/{client}/permissions", "writePermissions", Decide,
		"Write permission rules into a client's file, so that reads run without asking and other calls ask, or preview the change", (*ops.ClientOperations).WritePermissionRules)
)
