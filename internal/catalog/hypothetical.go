package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// WithConfig returns the tool as it would be under a configuration, without decisions: it
// has no status and no approval.
func (t *Tool) WithConfig(c *config.Config, server config.Server) *Tool {
	return newConfiguredTool(server, serverHintInferenceMode(server, c.Intent.InferHints), t.entry)
}

// ToolFromActivityRecord returns a tool that is known only from an activity record. It has no schema (see
// HasDefinition) and no status.
func ToolFromActivityRecord(id tool.ID, facts *tool.DecisionFacts) *Tool {
	in := classify.Inference{Unsure: facts.Unsure}
	in.Operation, _ = policy.ParseOperation(facts.Inferred)
	e := &analyzedTool{definition: &tool.Definition{ID: id, Hints: facts.DeclaredHints()}, classification: classify.NewKnownAnalysis(in)}
	return &Tool{Definition: e.definition, shown: e.definition, entry: e}
}

// HasDefinition reports whether the tool's definition is known.
func (t *Tool) HasDefinition() bool { return t.Raw != nil }

// LockReasons returns all reasons why a tool cannot be called at this moment, or nil if it can be called. The first
// reason is CurrentStatus.
func (c *Catalog) LockReasons(t *Tool) []policy.ToolStatus {
	server, _, _ := c.serverConfig(t.ID.Server)
	return policy.AllStatusesOf(newStatusFacts(server, c.Approvals.ServerView(t.ID.Server), t.entry))
}

// HypotheticalStatus returns the status a tool would have under a server configuration if
// it were switched off or approved.
func HypotheticalStatus(server config.Server, decided *approval.ServerView, name string, off, approved bool) policy.ToolStatus {
	return policy.StatusOf(policy.StatusFacts{
		Known: true, ServerEnabled: server.Enabled, Quarantined: IsQuarantined(server, decided),
		DeniedByConfig: isDeniedByConfig(server, name), SwitchedOff: off, Approved: approved,
	})
}
