package classify

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// ToolAnalysis caches the results of analyzing the definition of a tool: its inferred hints, and the argument that
// determines its effect. Each is computed on first use.
type ToolAnalysis struct {
	definition *tool.Definition // nil if nothing has to be computed
	inferOnce  sync.Once
	inferred   Inference
	ruleOnce   sync.Once
	rule       *ArgumentRule
}

// NewToolAnalysis returns the analysis of a tool.
func NewToolAnalysis(d *tool.Definition) *ToolAnalysis { return &ToolAnalysis{definition: d} }

// NewKnownAnalysis returns an analysis with a given inference, without a definition.
func NewKnownAnalysis(in Inference) *ToolAnalysis { return &ToolAnalysis{inferred: in} }

// InferredHints returns the inferred hints of the tool.
func (n *ToolAnalysis) InferredHints() Inference {
	n.inferOnce.Do(func() {
		if n.definition != nil {
			n.inferred = InferHints(*n.definition)
		}
	})
	return n.inferred
}

// ArgumentRule returns the rule for the tool's arguments; nil if there is none.
func (n *ToolAnalysis) ArgumentRule() *ArgumentRule {
	n.ruleOnce.Do(func() {
		if n.definition != nil {
			n.rule = detectArgumentRule(n.definition)
		}
	})
	return n.rule
}
