package api

import "mcpproxy/internal/ops"

// AddToys is for who has no servers yet.
var AddToys = declare("POST /demo", "addToys", Decide, "Write the three toy servers that come with MCPProxy into the configuration file; those that are there stay", (*ops.Toys).Add).within(restartPatience)
