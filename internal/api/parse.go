package api

import "mcpproxy/internal/ops"

// ParseServers parses a pasted text into the form of POST /servers.
var ParseServers = declareOperation("POST /servers/parse", "parseServers", Look, "Parse the servers in a pasted text; nothing is added", (*ops.Admin).ParsePastedServers)
