package api

import "mcpproxy/internal/admin"

// AddToys is for who has no servers yet.
var AddToys = declare("POST /demo", "addToys", Decide, "Write the three toy servers that come with MCPProxy into the configuration file; those that are there stay", (*admin.Toys).Add).within(restartPatience)
