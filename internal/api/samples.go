package api

import "mcpproxy/internal/ops"

// AddToys adds the sample servers.
var AddToys = declareOperation("POST /demo", "addToys", Decide, "Write the three toy servers that come with MCPProxy into the configuration file; those that are there stay", (*ops.SampleServers).AddMissing).withTimeout(restartTimeout)
