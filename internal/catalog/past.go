package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// Under returns the tool as a configuration would have it, if nobody decided anything
// about it: without a status, and without an approval.
func (t *Tool) Under(c *config.Config, server config.Server) *Tool {
	return underRules(server, infers(server, c.Intent.InferHints), t.entry)
}

// Remembered returns a tool of which nothing is known any more but what a record says
// of it. It has no schema (see HasSchema), and no status.
func Remembered(id tool.ID, judged *tool.Facts) *Tool {
	in := classify.Inference{Unsure: judged.Unsure}
	in.Operation, _ = policy.ParseOperation(judged.Inferred)
	e := &entry{definition: &tool.Definition{ID: id, Hints: judged.Declared()}, nature: classify.KnownAnalysis(in)}
	return &Tool{Definition: e.definition, entry: e}
}

// HasSchema reports whether it is known which arguments the tool takes.
func (t *Tool) HasSchema() bool { return t.Raw != nil }

// LocksNow are all reasons why a tool cannot be called, by what is decided at this
// moment; nil when it can. The first one is StatusNow.
func (c *Catalog) LocksNow(t *Tool) []policy.Status {
	server, _, _ := c.configured(t.ID.Server)
	return policy.Reasons(facts(server, c.Book.View(t.ID.Server), t.entry))
}

// StatusUnder is the status of a tool of a server as a configuration has it, if it is
// on or off and approved or not by what a person has decided.
func StatusUnder(server config.Server, decided *approval.View, name string, off, approved bool) policy.Status {
	return policy.StatusOf(policy.StatusFacts{
		Known: true, ServerEnabled: server.Enabled, Quarantined: Quarantined(server, decided),
		DeniedByConfig: denied(server, name), SwitchedOff: off, Approved: approved,
	})
}
