package policy

import "mcpproxy/internal/catalog/tool"

// InferMode determines how inferred hints are used. Unknown values count as InferEnforce.
type InferMode string

// The modes.
const (
	InferOff     InferMode = "off"
	InferAdvise  InferMode = "advise"
	InferEnforce InferMode = "enforce"
)

// HintsUnset reports whether the hints do not declare the effect of a tool. Only then are hints inferred.
func HintsUnset(h tool.Hints) bool { return h.ReadOnly == tool.Unset && h.Destructive == tool.Unset }

// EffectiveHints returns the effective hints of a tool. h is the override, else the hints of the server. inferred
// applies only if these are unset and the mode is enforce.
func EffectiveHints(h tool.Hints, inferred Operation, mode InferMode) tool.Hints {
	if !HintsUnset(h) || mode == InferOff || mode == InferAdvise {
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
