package api

import "mcpproxy/internal/ops"

// ParseServers reads what POST /servers takes.
var ParseServers = declare("POST /servers/parse", "parseServers", Look, "Read servers from a text that was pasted; nothing is added", (*ops.Admin).ParseServers)
