package policy

import "slices"

// Check is one of the checks that a call has to pass, in their order. The zero
// value is none.
type Check uint8

// The checks. Those of results that are put in, of the schema, of the place and of what a
// person is asked are the gate's, which needs the store, the definition, the queue and the
// answer for them.
const (
	NoCheck Check = iota
	CheckName
	CheckIntent
	CheckSelect
	CheckArguments
	CheckScope
	CheckExists
	CheckCallable
	CheckHints
	CheckResults
	CheckSchema
	CheckLane
	CheckPlace
	CheckAsk
)

// The names of the checks, in the order of their constants.
var checks = [...]string{
	CheckName: "name", CheckIntent: "intent", CheckSelect: "select", CheckArguments: "arguments", CheckScope: "scope", CheckExists: "tool_exists",
	CheckCallable: "callable", CheckHints: "hints", CheckResults: "results", CheckSchema: "schema", CheckLane: "lane", CheckPlace: "place", CheckAsk: "ask",
}

// String is the name that records have of the check; empty for NoCheck.
func (c Check) String() string {
	if int(c) < len(checks) {
		return checks[c]
	}
	return ""
}

// ParseCheck reads the name of a check; NoCheck for what is none.
func ParseCheck(name string) Check { return Check(max(0, slices.Index(checks[:], name))) }

// CheckWords are the names of all checks, in their order.
func CheckWords() []string { return append([]string{}, checks[CheckName:]...) }
