package policy

import "mcpproxy/internal/catalog/tool"

// InferMode is what is made of tools that do not say what they do. What is none
// of these counts as InferEnforce.
type InferMode string

// The modes.
const (
	InferOff     InferMode = "off"
	InferAdvise  InferMode = "advise"
	InferEnforce InferMode = "enforce"
)

// Silent reports whether hints leave open what a tool does: only then anything
// is inferred.
func Silent(h tool.Hints) bool { return h.ReadOnly == tool.Unset && h.Destructive == tool.Unset }

// Effective is what a tool counts as. h is the override where it says
// something, else what the server said; what is inferred counts only when that
// is silent and the mode enforces it.
func Effective(h tool.Hints, inferred Operation, mode InferMode) tool.Hints {
	if !Silent(h) || mode == InferOff || mode == InferAdvise {
		return h
	}
	switch inferred {
	case NoOperation:
	case Read:
		h.ReadOnly = tool.True
	case Write:
		h.ReadOnly, h.Destructive = tool.False, tool.False
	default:
		h.ReadOnly, h.Destructive = tool.False, tool.True
	}
	return h
}
