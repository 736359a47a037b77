package policy

import "slices"

// Check is one of the checks of a call, in order. The zero value is no check.
type Check uint8

// The checks. The checks of results, schema, queue slot, approval and pause are in package gate, because they need the
// store, the definition, the queue, the answer and the switch. CheckPause comes before all others.
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
	CheckQueue
	CheckAsk
	CheckPause
)

// The names of the checks, in the order of the constants.
var checks = [...]string{
	CheckName: "name", CheckIntent: "intent", CheckSelect: "select", CheckArguments: "arguments", CheckScope: "scope", CheckExists: "tool_exists",
	CheckCallable: "callable", CheckHints: "hints", CheckResults: "results", CheckSchema: "schema", CheckLane: "lane", CheckQueue: "place", CheckAsk: "ask", CheckPause: "pause",
}

// String returns the name of the check in records; empty for NoCheck.
func (c Check) String() string {
	if int(c) < len(checks) {
		return checks[c]
	}
	return ""
}

// ParseCheck parses the name of a check; NoCheck if unknown.
func ParseCheck(name string) Check { return Check(max(0, slices.Index(checks[:], name))) }

// CheckNames returns the names of all checks, in order.
func CheckNames() []string { return append([]string{}, checks[CheckName:]...) }
