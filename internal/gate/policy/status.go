package policy

import (
	"cmp"
	"strings"
)

// ToolStatus is the reason why a tool cannot be called. The zero value is DisabledUnknown, so that an unset status
// refuses.
type ToolStatus uint8

// The statuses; Callable means that there is no reason.
const (
	DisabledUnknown ToolStatus = iota
	ServerDisabled
	ServerQuarantined
	DisabledByConfig
	DisabledByUser
	PendingApproval
	Callable
)

// StatusFacts are the inputs of a status. The zero value yields DisabledUnknown.
type StatusFacts struct {
	// Known is false if the state could not be read. In that case the other fields have no meaning.
	Known          bool
	ServerEnabled  bool
	Quarantined    bool // the server awaits review
	DeniedByConfig bool // locked by enabled_tools or disabled_tools
	SwitchedOff    bool // switched off by a user
	Approved       bool
}

// StatusOf returns the reason why a tool cannot be called. The first reason that applies is returned, in order from
// the server to the definition.
func StatusOf(f StatusFacts) ToolStatus {
	for s := DisabledUnknown; s < Callable; s++ {
		if f.applies(s) {
			return s
		}
	}
	return Callable
}

// AllStatusesOf returns all applicable statuses. The first one is the result of StatusOf.
func AllStatusesOf(f StatusFacts) (all []ToolStatus) {
	for s := DisabledUnknown; s < Callable; s++ {
		if f.applies(s) {
			all = append(all, s)
		}
	}
	return all
}

// applies reports whether a status applies, regardless of the others.
func (f *StatusFacts) applies(s ToolStatus) bool {
	switch {
	case !f.Known: // nothing else is known in this case
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

// statuses has one line per status, in the order of the constants.
var statuses = [...]struct {
	name   string // name in the contract; empty for a callable tool
	remedy string // the action that makes a tool callable, for a model to take or to tell the user
	offer  string // the same for prompts, resources and instructions, if different
	prompt string // the action of a user in the CLI, with $server and $tool
}{
	DisabledUnknown: {"disabled_unknown", "The reason is undetermined: ask the user to check the server's logs.",
		"The server's current list is unknown: try again in a moment, or ask the user to check the server's logs.",
		"See `mcpproxy upstream logs $server`."},
	ServerDisabled: {"server_disabled", "The server is disabled: ask the user to enable the server first.", "",
		"Enable the server with `mcpproxy upstream enable $server`."},
	ServerQuarantined: {"server_quarantined", "The server is quarantined: a person must review and approve the server, in the UI or with `mcpproxy upstream approve`.", "",
		"Review the server with `mcpproxy upstream approve $server`."},
	DisabledByConfig: {"disabled_by_config", "Operator policy: enabled_tools or disabled_tools of its server deny this tool. To allow it the operator must edit mcp_config.json; the user cannot override it in the UI.", "",
		"Only the configuration can allow it: enabled_tools or disabled_tools of the server, in the file that `mcpproxy config path` names."},
	DisabledByUser: {"disabled_by_user", "A user switched this tool off: ask the user to switch it on again in the UI or with `mcpproxy tools enable`.", "",
		"Switch it on with `mcpproxy tools enable $tool`."},
	PendingApproval: {"pending_approval", "The tool is new or has changed and is not approved yet: ask the user to review and approve it in the UI or with `mcpproxy approvals`.",
		"It is new or has changed and is not approved yet: ask the user to review and approve it in the UI or with `mcpproxy approvals`.",
		"Review it with `mcpproxy tools diff $tool`, approve it with `mcpproxy tools approve $tool`."},
	Callable: {},
}

// blockedRemedy is the remedy of PendingApproval for a tool whose definition a user has blocked.
const blockedRemedy = "A user blocked this tool. Ask the user to unblock it, in the UI or with `mcpproxy tools unblock`, then to review and approve it."

// BlockedCommandRemedy is the CommandRemedy of PendingApproval for a tool whose definition a user has blocked.
func BlockedCommandRemedy(tool string) string {
	return "Unblock it with `mcpproxy tools unblock " + tool + "`, then approve it with `mcpproxy tools approve " + tool + "`."
}

// StatusCount is the number of statuses, including Callable.
const StatusCount = len(statuses)

// Statuses returns all statuses in order of precedence, without Callable.
func Statuses() []ToolStatus {
	var all []ToolStatus
	for s := DisabledUnknown + 1; s < Callable; s++ {
		all = append(all, s)
	}
	return append(all, DisabledUnknown)
}

// orUnknown returns the status itself, or DisabledUnknown for an invalid value.
func (s ToolStatus) orUnknown() ToolStatus {
	if int(s) >= StatusCount {
		return DisabledUnknown
	}
	return s
}

// String returns the name in the contract; empty for Callable.
func (s ToolStatus) String() string { return statuses[s.orUnknown()].name }

// Word is String, but "callable" for Callable.
func (s ToolStatus) Word() string { return cmp.Or(s.String(), "callable") }

// Remedy returns the action that makes the tool callable, as a sentence for a model; empty for Callable. It is never
// an action that an agent can take.
func (s ToolStatus) Remedy() string { return statuses[s.orUnknown()].remedy }

// PrimitiveRemedy is Remedy for prompts, resources and instructions.
func (s ToolStatus) PrimitiveRemedy() string {
	return cmp.Or(statuses[s.orUnknown()].offer, s.Remedy())
}

// CommandRemedy returns the action of a user in the CLI that makes the tool callable, with shell-quoted names.
func (s ToolStatus) CommandRemedy(server, tool string) string {
	return strings.NewReplacer("$server", server, "$tool", tool).Replace(statuses[s.orUnknown()].prompt)
}
