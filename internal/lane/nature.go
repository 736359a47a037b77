package lane

import (
	"sync"

	"mcpproxy/internal/effect"
	"mcpproxy/internal/tool"
)

// Inference is what a tool seems to do by itself; the zero value says nothing.
type Inference = effect.Inference

// Nature is what follows from a definition alone about what its tool does: by itself, and
// by which argument. Each is worked out when it is first asked for.
type Nature struct {
	Inferred func() Inference
	JudgedBy func() *Rule // nil where no argument shows it
}

// NatureOf returns the nature of a tool.
func NatureOf(d tool.Definition) Nature {
	return Nature{
		Inferred: sync.OnceValue(func() Inference { return effect.Infer(d) }),
		JudgedBy: sync.OnceValue(func() *Rule { return Detect(&d) }),
	}
}

// KnownNature is the nature of a tool of which only this is known any more.
func KnownNature(in Inference) Nature {
	return Nature{Inferred: func() Inference { return in }, JudgedBy: func() *Rule { return nil }}
}
