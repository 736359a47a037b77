// Package policy decides whether a call may go on: given the variant, the
// declared intent, the facts about the tool and the rules, it says allow, warn
// or reject, with the exact message of the contract.
//
// It guarantees that the decision is pure (no I/O, no clock, no state), total
// (every combination has an answer) and fails closed: the zero values of
// Verdict, Status, Variant and Operation refuse. It does not parse JSON, look
// tools up or write records; the gateway brings the facts and carries the
// decision out.
package policy

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
// strings as they came. Flat parameters (intent_data_sensitivity,
// intent_reason) and the members of the intent object end up here; where both
// say something different the caller of Decide has to set Conflict.
type Declared struct {
	// Present is true when an intent object was given, even an empty one.
	Present bool
	// Malformed is the reason why the intent could not be read at all (not an
	// object, operation_type not a string, …); empty when it could.
	Malformed string
	// HasOperation tells a missing operation_type from an empty one.
	HasOperation    bool
	OperationType   string
	HasSensitivity  bool
	DataSensitivity string
	HasReason       bool
	Reason          string
}

// Intent is a checked declaration: what the record keeps.
type Intent struct {
	Operation   Operation
	Sensitivity string // "" when not given, else public, internal, private or unknown
	Reason      string // "" when not given
}
