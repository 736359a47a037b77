package api

import "mcpproxy/internal/ops"

// The operations on the configuration file.
var (
	GetConfig        = declareOperation("GET /config", "getConfig", Look, "Get the configuration file, its state, and all settings", (*ops.ConfigOperations).Config)
	ChangeConfig     = declareOperation("PATCH /config", "changeConfig", Decide, "Set settings in the configuration file; null takes one out", (*ops.ConfigOperations).ChangeSettings).withTimeout(restartTimeout)
	ReplaceConfig    = declareOperation("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*ops.ConfigOperations).ReplaceFile).withTimeout(restartTimeout)
	ValidateConfig   = declareOperation("POST /config/validate", "validateConfig", Look, "Check a text of the configuration file without applying it", (*ops.ConfigOperations).Validate)
	ConfirmConfig    = declareOperation("POST /config/confirm", "confirmConfig", Decide, "Apply the whole configuration file, including changes that grant more access; presence requires a signature", (*ops.ConfigOperations).ConfirmChanges).withTimeout(restartTimeout)
	ListConfigs      = declareOperation("GET /config/history", "listConfigs", Look, "The texts that were in force, newest first", (*ops.ConfigOperations).ListVersions)
	GetEarlierConfig = declareOperation("GET /config/history/{id}", "getEarlierConfig", Look, "A text that was in force", (*ops.ConfigOperations).VersionText)
	GetDiagnostics   = declareOperation("GET /diagnostics", "getDiagnostics", Look, "List problems of this installation and their fixes", (*ops.ConfigOperations).RunDiagnostics)
)
