package classify

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Analysis caches what follows from the definition of a tool: its inferred hints, and the argument that
// determines its effect. Each is computed on first use.
type Analysis struct {
	definition *tool.Definition // nil if all is known
	inferOnce  sync.Once
	inferred   Inference
	ruleOnce   sync.Once
	rule       *Rule
}

// NewAnalysis returns the analysis of a tool.
func NewAnalysis(d *tool.Definition) *Analysis { return &Analysis{definition: d} }

// KnownAnalysis returns an analysis with a known inference, without a definition.
func KnownAnalysis(in Inference) *Analysis { return &Analysis{inferred: in} }

// Inferred returns the inferred hints of the tool.
func (n *Analysis) Inferred() Inference {
	n.inferOnce.Do(func() {
		if n.definition != nil {
			n.inferred = InferHints(*n.definition)
		}
	})
	return n.inferred
}

// ArgumentRule returns the rule for its arguments; nil if there is none.
func (n *Analysis) ArgumentRule() *Rule {
	n.ruleOnce.Do(func() {
		if n.definition != nil {
			n.rule = detect(n.definition)
		}
	})
	return n.rule
}
