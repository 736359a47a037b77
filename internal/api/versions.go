package api

import (
	"time"

	"mcpproxy/internal/ops"
)

// versionTimeout covers the installation and the start of a server.
const versionTimeout = 6 * time.Minute

// The operations on the versions and sandboxes of servers.
var (
	ListOutdated   = declareOperation("GET /outdated", "listOutdated", Look, "Compare the versions of the servers that npx, uvx or docker starts with the newest ones; asks the registries", (*ops.VersionOperations).Outdated).withTimeout(versionTimeout)
	UpdateServer   = declareOperation("POST /servers/{name}/update", "updateServer", Decide, "Show another version of a server, start it next to the running one, or switch to it", (*ops.VersionOperations).Update).withTimeout(versionTimeout)
	RollBackServer = declareOperation("POST /servers/{name}/rollback", "rollBackServer", Decide, "Switch a server to the version before its last update", (*ops.VersionOperations).Rollback).withTimeout(versionTimeout)
	SuggestSandbox = declareOperation("POST /servers/{name}/sandbox/suggest", "suggestSandbox", Operate, "Propose a sandbox for a server, from its launch and from trial runs in strict sandboxes; changes nothing", (*ops.VersionOperations).SuggestSandbox).withTimeout(versionTimeout)
)
