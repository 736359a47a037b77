package api

import (
	"time"

	"mcpproxy/internal/ops"
)

// registryTimeout covers the requests to all registries.
const registryTimeout = 3 * time.Minute

// The operations on registries.
var (
	SearchRegistry    = declareOperation("GET /registry/servers", "searchRegistry", Look, "Search servers in the MCP registries, latest versions only", (*ops.RegistryOperations).Search).withTimeout(registryTimeout)
	ShowRegistryEntry = declareOperation("GET /registry/server", "showRegistryEntry", Look, "Get one version of a server in an MCP registry, and what it asks for", (*ops.RegistryOperations).Show).withTimeout(registryTimeout)
	AddFromRegistry   = declareOperation("POST /registry/add", "addFromRegistry", Decide, "Add a server from an MCP registry; it waits for review and is not started before", (*ops.RegistryOperations).Add).withTimeout(registryTimeout)
)
