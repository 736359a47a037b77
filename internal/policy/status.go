package policy

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

// StatusFacts is what a status follows from. The zero value gives
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
	switch {
	case !f.Known:
		return DisabledUnknown
	case !f.ServerEnabled:
		return ServerDisabled
	case f.Quarantined:
		return ServerQuarantined
	case f.DeniedByConfig:
		return DisabledByConfig
	case f.SwitchedOff:
		return DisabledByUser
	case !f.Approved:
		return PendingApproval
	}
	return Callable
}

// Statuses are all statuses a tool that cannot be called may have, in the order
// of precedence. Callable is none of them.
func Statuses() []Status {
	return []Status{ServerDisabled, ServerQuarantined, DisabledByConfig, DisabledByUser, PendingApproval, DisabledUnknown}
}

// String is the spelling of the contract. It is empty for Callable, since a
// tool with no status is callable; a value that is no status is unknown.
func (s Status) String() string {
	switch s {
	case Callable:
		return ""
	case ServerDisabled:
		return "server_disabled"
	case ServerQuarantined:
		return "server_quarantined"
	case DisabledByConfig:
		return "disabled_by_config"
	case DisabledByUser:
		return "disabled_by_user"
	case PendingApproval:
		return "pending_approval"
	}
	return "disabled_unknown"
}

// Remedy is what would make the tool callable, as a sentence for a model to act
// on or to pass on to its user; empty for Callable. No remedy is something
// that an agent could do by itself.
func (s Status) Remedy() string {
	switch s {
	case Callable:
		return ""
	case ServerDisabled:
		return "The server is disabled: ask the user to enable the server first."
	case ServerQuarantined:
		return "The server is quarantined: a person must review and approve the server."
	case DisabledByConfig:
		return "Operator policy: enabled_tools or disabled_tools of its server deny this tool. To allow it the operator must edit mcp_config.json; the user cannot override it in the UI."
	case DisabledByUser:
		return "A person switched this tool off: ask the user to switch it on again in the UI."
	case PendingApproval:
		return "The tool is new or has changed and nobody has approved it yet: ask the user to review and approve it in the UI."
	}
	return "The reason is undetermined: ask the user to check the server's logs."
}
