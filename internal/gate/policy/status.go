package policy

import (
	"cmp"
	"strings"
)

// Status is why a tool cannot be called. The zero value is DisabledUnknown, so
// that a status nobody worked out refuses.
type Status uint8

// The statuses, and Callable for a tool that has none.
const (
	DisabledUnknown Status = iota
	ServerDisabled
	ServerQuarantined
	DisabledByConfig
	DisabledByUser
	PendingApproval
	Callable
)

// StatusFacts is what a status follows from. The zero value is
// DisabledUnknown.
type StatusFacts struct {
	// Known is false when any of the state could not be read; the other fields
	// then say nothing.
	Known          bool
	ServerEnabled  bool
	Quarantined    bool // the server waits for review
	DeniedByConfig bool // by enabled_tools or disabled_tools
	SwitchedOff    bool // by a person
	Approved       bool
}

// StatusOf is the one place that says why a tool cannot be called. The first
// reason wins, from the server down to the definition.
func StatusOf(f StatusFacts) Status {
	for s := DisabledUnknown; s < Callable; s++ {
		if f.holds(s) {
			return s
		}
	}
	return Callable
}

// Reasons are all statuses that hold, the one that wins first.
func Reasons(f StatusFacts) (all []Status) {
	for s := DisabledUnknown; s < Callable; s++ {
		if f.holds(s) {
			all = append(all, s)
		}
	}
	return all
}

// holds reports whether the facts are a reason for a status, whatever others there
// are. The statuses stand in their order.
func (f *StatusFacts) holds(s Status) bool {
	switch {
	case !f.Known: // then nothing else is, either
		return s == DisabledUnknown
	case s == ServerDisabled:
		return !f.ServerEnabled
	case s == ServerQuarantined:
		return f.Quarantined
	case s == DisabledByConfig:
		return f.DeniedByConfig
	case s == DisabledByUser:
		return f.SwitchedOff
	case s == PendingApproval:
		return !f.Approved
	}
	return false
}

// statuses is all that differs by status. A status has a line here, in the order of
// the constants, and that is all.
var statuses = [...]struct {
	name   string // the spelling of the contract; a tool with no status is callable
	remedy string // what would make a tool callable, for a model to act on or to pass on
	offer  string // the same for what is no tool, where that is not the remedy
	prompt string // what a person at a prompt does, with $server and $tool
}{
	DisabledUnknown: {"disabled_unknown", "The reason is undetermined: ask the user to check the server's logs.",
		"It is not known what the server offers now: try again in a moment, or ask the user to check the server's logs.",
		"See `mcpproxy upstream logs $server`."},
	ServerDisabled: {"server_disabled", "The server is disabled: ask the user to enable the server first.", "",
		"Enable the server with `mcpproxy upstream enable $server`."},
	ServerQuarantined: {"server_quarantined", "The server is quarantined: a person must review and approve the server, in the UI or with `mcpproxy upstream approve`.", "",
		"Review the server with `mcpproxy upstream approve $server`."},
	DisabledByConfig: {"disabled_by_config", "Operator policy: enabled_tools or disabled_tools of its server deny this tool. To allow it the operator must edit mcp_config.json; the user cannot override it in the UI.", "",
		"Only the configuration can allow it: enabled_tools or disabled_tools of the server, in the file that `mcpproxy config path` names."},
	DisabledByUser: {"disabled_by_user", "A person switched this tool off: ask the user to switch it on again in the UI or with `mcpproxy tools enable`.", "",
		"Switch it on with `mcpproxy tools enable $tool`."},
	PendingApproval: {"pending_approval", "The tool is new or has changed and nobody has approved it yet: ask the user to review and approve it in the UI or with `mcpproxy approvals`.",
		"It is new or has changed and nobody has approved it yet: ask the user to review and approve it in the UI or with `mcpproxy approvals`.",
		"Look at it with `mcpproxy tools diff $tool`, approve it with `mcpproxy tools approve $tool`."},
	Callable: {},
}

// StatusCount is how many values a Status has, with Callable.
const StatusCount = len(statuses)

// Statuses are all statuses a tool that cannot be called may have, in the order
// of precedence. Callable is none of them.
func Statuses() []Status {
	var all []Status
	for s := DisabledUnknown + 1; s < Callable; s++ {
		all = append(all, s)
	}
	return append(all, DisabledUnknown)
}

// known is the status itself, or unknown for a value that is none.
func (s Status) known() Status {
	if int(s) >= StatusCount {
		return DisabledUnknown
	}
	return s
}

// String is the spelling of the contract; empty for Callable.
func (s Status) String() string { return statuses[s.known()].name }

// Word is String, and "callable" for Callable.
func (s Status) Word() string { return cmp.Or(s.String(), "callable") }

// Remedy is what would make the tool callable, as a sentence for a model to act
// on or to pass on to its user; empty for Callable. No remedy is something
// that an agent could do by itself.
func (s Status) Remedy() string { return statuses[s.known()].remedy }

// OfferRemedy is Remedy for what is no tool.
func (s Status) OfferRemedy() string { return cmp.Or(statuses[s.known()].offer, s.Remedy()) }

// PromptRemedy is what a person at a prompt does about a tool, with the names as a
// shell takes them.
func (s Status) PromptRemedy(server, tool string) string {
	return strings.NewReplacer("$server", server, "$tool", tool).Replace(statuses[s.known()].prompt)
}
