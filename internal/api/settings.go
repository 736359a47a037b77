package api

import "mcpproxy/internal/ops"

// The operations on the configuration file.
var (
	GetConfig        = declareOperation("GET /config", "getConfig", Look, "The configuration file, what is in force of it, and all settings", (*ops.ConfigOperations).Config)
	ChangeConfig     = declareOperation("PATCH /config", "changeConfig", Decide, "Set settings in the configuration file; null takes one out", (*ops.ConfigOperations).ChangeSettings).withTimeout(restartTimeout)
	ReplaceConfig    = declareOperation("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*ops.ConfigOperations).ReplaceFile).withTimeout(restartTimeout)
	ValidateConfig   = declareOperation("POST /config/validate", "validateConfig", Look, "What would come of a text of the configuration file; nothing is applied", (*ops.ConfigOperations).Validate)
	ConfirmConfig    = declareOperation("POST /config/confirm", "confirmConfig", Decide, "Have all of the configuration file in force, what widens too: with presence a person permits it", (*ops.ConfigOperations).ConfirmChanges).withTimeout(restartTimeout)
	ListConfigs      = declareOperation("GET /config/history", "listConfigs", Look, "The texts that were in force, newest first", (*ops.ConfigOperations).ListVersions)
	GetEarlierConfig = declareOperation("GET /config/history/{id}", "getEarlierConfig", Look, "A text that was in force", (*ops.ConfigOperations).VersionText)
	GetDiagnostics   = declareOperation("GET /diagnostics", "getDiagnostics", Look, "What is wrong with this installation, and what to do about it", (*ops.ConfigOperations).RunDiagnostics)
)
