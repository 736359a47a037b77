package api

import "mcpproxy/internal/ops"

// ParseServers parses a pasted text into the form of POST /servers.
var ParseServers = declareOperation("POST /servers/parse", "parseServers", Look, "Read servers from a text that was pasted; nothing is added", (*ops.Admin).ParsePastedServers)
