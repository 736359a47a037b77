// Package policy decides whether a call may go on: given the variant (the tool
// that was used: call_tool_read, _write or _destructive), the declared intent,
// the facts about the tool and the rules, it says allow, warn or reject, with the
// exact message of the contract. A destructive tool called as less, and one that is
// not read-only called as a read, are rejected (warned of, without
// strict_server_validation); other mismatches are warned of at most.
//
// It guarantees that the decision is pure (no I/O, no clock, no state), total
// (every combination has an answer) and fails closed: the zero values of
// Verdict, Status, Variant and Operation refuse. It reads a declaration (Add),
// but it does not look tools up or write records; gate brings the facts and
// carries the decision out.
//
// On intent, status, check and arguments stand facts and infer, on these messages, and
// on them declare and decide; on that judge, which holds a call that may go on against
// what its arguments do.
package policy

import (
	"encoding/json"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// Operation is what a call does. The zero value is "none declared".
type Operation uint8

// The operations.
const (
	NoOperation Operation = iota
	Read
	Write
	Destructive
)

// Variant is one of the three calling tools. The zero value is no variant, and
// every call with it is refused.
type Variant uint8

// The variants.
const (
	NoVariant Variant = iota
	CallToolRead
	CallToolWrite
	CallToolDestructive
)

// MaxReason is the longest reason, in characters (not bytes).
const MaxReason = 1000

// Declared is what the caller said about its intent, before any check: the
// strings as they came. The flat parameters (intent_operation_type,
// intent_data_sensitivity, intent_reason) and the members of the intent object both end up here.
//
// An operation_type that is not a JSON string is a bad operation type: it is
// given as its JSON text. Everything else that cannot be read is Malformed.
type Declared struct {
	// Present is true when an intent object was given, even an empty one.
	Present bool
	// Malformed is why the intent cannot be read, as a complete message (see
	// IntentNotObject, FieldNotString and FieldsDiffer); empty when it can.
	// Such a call is refused with INVALID_ARGS, in either mode.
	Malformed string
	// HasOperation says that an operation type was given. Without one it is
	// inferred from the variant, or required.
	HasOperation  bool
	OperationType string
	// HasSensitivity and HasReason say that the member was there. An empty
	// string counts as not given: models fill optional parameters so, and
	// nothing is decided by them.
	HasSensitivity  bool
	DataSensitivity string
	HasReason       bool
	Reason          string

	given [len(parameters)]json.RawMessage // by their place in parameters, as they came
}

// parameters are those of a call that declare something.
var parameters = [...]string{"intent", "intent_operation_type", "intent_data_sensitivity", "intent_reason"}

// Intent is a checked declaration: what the record keeps, of refused calls too.
type Intent struct {
	// Operation is the declared operation when a valid one was declared, else
	// that of the variant.
	Operation   Operation
	Sensitivity string // "" when not given, else public, internal, private or unknown
	Reason      string // "" when not given
}

// The spellings of the operations, in the order of their constants.
var operations = [...]string{Read: "read", Write: "write", Destructive: "destructive"}

// String is the spelling of the contract; empty for NoOperation.
func (o Operation) String() string {
	if int(o) < len(operations) {
		return operations[o]
	}
	return ""
}

// ParseOperation reads the exact spelling of an operation.
func ParseOperation(s string) (Operation, bool) {
	i := max(slices.Index(operations[:], s), 0)
	return Operation(i), i > 0
}

// The names of the calling tools, in the order of their constants.
var variants = [...]string{
	CallToolRead: "call_tool_read", CallToolWrite: "call_tool_write", CallToolDestructive: "call_tool_destructive",
}

// String is the name of the calling tool; empty for NoVariant.
func (v Variant) String() string {
	if int(v) < len(variants) {
		return variants[v]
	}
	return ""
}

// ParseVariant reads the exact name of a calling tool.
func ParseVariant(toolName string) (Variant, bool) {
	i := max(slices.Index(variants[:], toolName), 0)
	return Variant(i), i > 0
}

// Operation is the operation that the variant is for: their constants stand in
// one order.
func (v Variant) Operation() Operation {
	if int(v) < len(operations) {
		return Operation(v)
	}
	return NoOperation
}

// VariantOf is the variant for an operation: the inverse of Variant.Operation.
func VariantOf(o Operation) Variant {
	if int(o) < len(variants) {
		return Variant(o)
	}
	return NoVariant
}

// CallWith is the variant that a tool with these hints is to be called with.
// Destructive wins over read-only; a tool that says neither is taken to write.
func CallWith(h tool.Hints) Variant {
	switch {
	case h.Destructive == tool.True:
		return CallToolDestructive
	case h.ReadOnly == tool.True:
		return CallToolRead
	}
	return CallToolWrite
}

// Sensitivities are the data sensitivities that an intent may declare.
func Sensitivities() []string { return []string{"public", "internal", "private", "unknown"} }

// Stricter returns the stricter of two data sensitivities, each perhaps not given. What is
// unknown may be anything but private.
func Stricter(a, b string) string {
	order := []string{"", "public", "internal", "unknown", "private"}
	return order[max(slices.Index(order, a), slices.Index(order, b), 0)]
}

// ParseSensitivity reports whether s is one of the data sensitivities.
func ParseSensitivity(s string) bool { return slices.Contains(Sensitivities(), s) }
