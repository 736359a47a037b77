package classify

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Analysis caches what follows from the definition of a tool: its inferred hints, and the argument that
// determines its effect. Each is computed on first use.
type Nature struct {
	of       *tool.Definition // nil if all is known
	infer    sync.Once
	inferred Inference
	judge    sync.Once
	judgedBy *Rule
}

// NewAnalysis returns the analysis of a tool.
func NatureOf(d *tool.Definition) *Nature { return &Nature{of: d} }

// KnownAnalysis returns an analysis with a known inference, without a definition.
func KnownNature(in Inference) *Nature { return &Nature{inferred: in} }

// Inferred returns the inferred hints of the tool.
func (n *Nature) Inferred() Inference {
	n.infer.Do(func() {
		if n.of != nil {
			n.inferred = InferHints(*n.of)
		}
	})
	return n.inferred
}

// ArgumentRule returns the rule for its arguments; nil if there is none.
func (n *Nature) JudgedBy() *Rule {
	n.judge.Do(func() {
		if n.of != nil {
			n.judgedBy = detect(n.of)
		}
	})
	return n.judgedBy
}
