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

// SandboxProof is what the sandbox of a server proves about its tools. The zero value proves nothing.
type SandboxProof struct {
	ReadOnly  bool // the server can write only to its private temporary folder, and reaches no network
	NoNetwork bool
}

// ProvenHints returns the hints that a sandbox adds to the effective hints h, whose inferred part is not included.
// inferred is the inferred operation if it counts like a hint of the server. A hint of the server or the user, and an
// operation that is inferred as more than read, take precedence.
func ProvenHints(h tool.Hints, inferred Operation, proof SandboxProof) (proven tool.Hints) {
	if proof.ReadOnly && HintsUnset(h) && (inferred == NoOperation || inferred == Read) {
		proven.ReadOnly = tool.True
	}
	if proof.NoNetwork && h.OpenWorld == tool.Unset {
		proven.OpenWorld = tool.False
	}
	return proven
}
