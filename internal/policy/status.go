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
	// Known is false when any of the state could not be read.
	Known          bool
	ServerEnabled  bool
	Quarantined    bool
	DeniedByConfig bool
	SwitchedOff    bool
	Approved       bool
}
