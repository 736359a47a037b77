package api

import "mcpproxy/internal/ops"

// AddToys adds the sample servers.
var AddToys = declareOperation("POST /demo", "addToys", Decide, "Add the three sample servers to the configuration file, unless they exist", (*ops.SampleServers).AddMissing).withTimeout(restartTimeout)
