package api

import "mcpproxy/internal/ops"

// The operations on the configuration file.
var (
	GetConfig        = declareOperation("GET /config", "getConfig", Look, "Get the configuration file, its state, and all settings", (*ops.ConfigOperations).Config)
	ChangeConfig     = declareOperation("PATCH /config", "changeConfig", Decide, "Change settings in the configuration file; null removes a key", (*ops.ConfigOperations).ChangeSettings).withTimeout(restartTimeout)
	ReplaceConfig    = declareOperation("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*ops.ConfigOperations).ReplaceFile).withTimeout(restartTimeout)
	ValidateConfig   = declareOperation("POST /config/validate", "validateConfig", Look, "Check a text of the configuration file without applying it", (*ops.ConfigOperations).Validate)
	ConfirmConfig    = declareOperation("POST /config/confirm", "confirmConfig", Decide, "Apply the whole configuration file, including changes that grant more access; presence requires a signature", (*ops.ConfigOperations).ConfirmChanges).withTimeout(restartTimeout)
	ListConfigs      = declareOperation("GET /config/history", "listConfigs", Look, "List applied versions of the configuration, newest first", (*ops.ConfigOperations).ListVersions)
	GetEarlierConfig = declareOperation("GET /config/history/{id}", "getEarlierConfig", Look, "Get an applied version of the configuration", (*ops.ConfigOperations).VersionText)
	GetDiagnostics   = declareOperation("GET /diagnostics", "getDiagnostics", Look, "List problems of this installation and their fixes", (*ops.ConfigOperations).RunDiagnostics)
)
