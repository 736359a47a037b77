// Package policy decides whether a call is allowed.
//
// A lane is one of the three classes of calls, read, write and destructive, each with its own call tool:
// call_tool_read, call_tool_write and call_tool_destructive. A caller chooses the lane by choosing the call tool.
//
// The input of a decision consists of the call tool, the declared intent, the facts about the tool and the rules. The
// output is allow, warn or reject, with the exact message of the contract. Policy rejects a call to a destructive
// tool in another lane, and a call in the read lane to a tool that is not read-only. Without strict_server_validation
// it only warns about these calls. Other mismatches cause at most a warning.
//
//   - decide.go: Decide; decide_by_arguments.go: DecideByArguments, after Decide
//   - intent.go: call tools, operations, the declared intent; declare.go: parses it
//   - decision_input.go: the input; infer.go: inferred hints; arguments.go: the effect of the arguments
//   - ask_rules.go: which rule requires an approval
//   - status.go: why a tool is locked; check.go: the names of the checks; scope.go: the scope of a caller
//   - select_parameter.go: parses select; messages.go: all texts of refusals and warnings
//
// Guarantees:
//
//   - The decision is pure: no I/O, no clock, no state.
//   - It is total: every combination has a result.
//   - It fails closed: the zero values of Verdict, ToolStatus, CallToolVariant and Operation refuse.
//   - It parses declarations, but does not look up tools or write records. Package gate provides the facts and
//     executes the decision.
package policy

import (
	"encoding/json"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// Operation is the effect of a call. The zero value is "none declared".
type Operation uint8

// The operations.
const (
	NoOperation Operation = iota
	Read
	Write
	Destructive
)

// CallToolVariant is one of the three call tools. The zero value is no call tool, and every call with it is refused.
type CallToolVariant uint8

// The variants.
const (
	CallToolNone CallToolVariant = iota
	CallToolRead
	CallToolWrite
	CallToolDestructive
)

// MaxReason is the maximum length of a reason, in characters.
const MaxReason = 1000

// DeclaredIntent is the intent that the caller declared, unchecked. The flat parameters (intent_operation_type,
// intent_data_sensitivity, intent_reason) and the members of the intent object are combined here.
//
// An operation_type that is not a string is an invalid operation type and is stored as its JSON text. Other parse
// errors are stored in Malformed.
type DeclaredIntent struct {
	// Present is true if an intent object was given, even an empty one.
	Present bool
	// Malformed is the parse error as a complete message (see IntentNotObject, FieldNotStringText and
	// FieldsDifferText), or empty. Such a call is refused with INVALID_ARGS in all modes.
	Malformed string
	// HasOperation reports whether an operation type was given. Otherwise it is derived from the variant, or
	// required.
	HasOperation  bool
	OperationType string
	// HasSensitivity and HasReason report whether the member was given. An empty string counts as missing, because
	// models fill in optional parameters.
	HasSensitivity  bool
	DataSensitivity string
	HasReason       bool
	Reason          string

	given [len(parameters)]json.RawMessage // raw values, by index in parameters
}

// parameters are the tool parameters with which a caller declares its intent.
var parameters = [...]string{"intent", "intent_operation_type", "intent_data_sensitivity", "intent_reason"}

// Intent is a checked declaration in its recorded form. Refused calls have one, too.
type Intent struct {
	// Operation is the declared operation if valid, otherwise the operation of the variant.
	Operation   Operation
	Sensitivity string // "" if missing, otherwise public, internal, private or unknown
	Reason      string // "" if missing
}

// The names of the operations, in the order of the constants.
var operations = [...]string{Read: "read", Write: "write", Destructive: "destructive"}

// String returns the name in the contract; empty for NoOperation.
func (o Operation) String() string {
	if int(o) < len(operations) {
		return operations[o]
	}
	return ""
}

// ParseOperation parses the exact name of an operation.
func ParseOperation(s string) (Operation, bool) {
	i := max(slices.Index(operations[:], s), 0)
	return Operation(i), i > 0
}

// The names of the call tools, in the order of the constants.
var variants = [...]string{
	CallToolRead: "call_tool_read", CallToolWrite: "call_tool_write", CallToolDestructive: "call_tool_destructive",
}

// String returns the name of the call tool; empty for CallToolNone.
func (v CallToolVariant) String() string {
	if int(v) < len(variants) {
		return variants[v]
	}
	return ""
}

// ParseCallToolName parses the exact name of a call tool.
func ParseCallToolName(toolName string) (CallToolVariant, bool) {
	i := max(slices.Index(variants[:], toolName), 0)
	return CallToolVariant(i), i > 0
}

// Operation returns the operation of the variant. The constants of both types have the same order.
func (v CallToolVariant) Operation() Operation {
	if int(v) < len(operations) {
		return Operation(v)
	}
	return NoOperation
}

// CallToolForOperation is the inverse of CallToolVariant.Operation.
func CallToolForOperation(o Operation) CallToolVariant {
	if int(o) < len(variants) {
		return CallToolVariant(o)
	}
	return CallToolNone
}

// CallToolForHints returns the variant for calling a tool with these hints. Destructive takes precedence over
// read-only. Without hints it is the write variant.
func CallToolForHints(h tool.Hints) CallToolVariant {
	switch {
	case h.Destructive == tool.True:
		return CallToolDestructive
	case h.ReadOnly == tool.True:
		return CallToolRead
	}
	return CallToolWrite
}

// Sensitivities returns the data sensitivities of an intent.
func Sensitivities() []string { return []string{"public", "internal", "private", "unknown"} }

// StricterSensitivity returns the stricter of two data sensitivities, which may be empty. Unknown is stricter than
// all except private.
func StricterSensitivity(a, b string) string {
	order := []string{"", "public", "internal", "unknown", "private"}
	return order[max(slices.Index(order, a), slices.Index(order, b), 0)]
}

// IsSensitivity reports whether s is a data sensitivity.
func IsSensitivity(s string) bool { return slices.Contains(Sensitivities(), s) }
