package classify

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Nature is what follows from a definition alone about what its tool does: by itself, and
// by which argument. Each is worked out when it is first asked for.
type Nature struct {
	of       *tool.Definition // nil when all that is known is worked out
	infer    sync.Once
	inferred Inference
	judge    sync.Once
	judgedBy *Rule
}

// NatureOf returns the nature of a tool.
func NatureOf(d *tool.Definition) *Nature { return &Nature{of: d} }

// KnownNature is the nature of a tool of which only this is known any more.
func KnownNature(in Inference) *Nature { return &Nature{inferred: in} }

// Inferred is what the tool seems to do by itself.
func (n *Nature) Inferred() Inference {
	n.infer.Do(func() {
		if n.of != nil {
			n.inferred = InferHints(*n.of)
		}
	})
	return n.inferred
}

// JudgedBy is by which argument it is judged; nil where none shows it.
func (n *Nature) JudgedBy() *Rule {
	n.judge.Do(func() {
		if n.of != nil {
			n.judgedBy = detect(n.of)
		}
	})
	return n.judgedBy
}
