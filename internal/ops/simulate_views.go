package ops

import "time"

// Outcome is what a candidate would have done to a call.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "allowed"
	Refused Outcome = "refused"
	Asked   Outcome = "asked" // it would wait for an approval
	Unknown Outcome = "unknown"
)

// Words returns all outcomes.
func (Outcome) Words() []string {
	return []string{string(Allowed), string(Refused), string(Asked), string(Unknown)}
}

// Trial is what a candidate would have done to the recorded calls.
type Trial struct {
	Since    time.Time    `json:"since"`
	Revision string       `json:"config_revision" doc:"Of the configuration that was tried."`
	InForce  string       `json:"in_force_revision" doc:"Of the one in force."`
	Calls    int64        `json:"calls" doc:"Calls that were judged, a repeated refusal each time."`
	Others   int64        `json:"other_configurations" doc:"Those of them that were decided about under another configuration than the one in force: they may differ even if nothing was changed."`
	Same     int64        `json:"same" doc:"Calls to which the same would have happened."`
	Refused  int64        `json:"refused" doc:"Calls that would have been rejected instead of allowed."`
	Allowed  int64        `json:"allowed" doc:"Calls that would have been allowed instead of rejected or held."`
	Asked    int64        `json:"asked" doc:"Calls that would have been held for approval instead."`
	Unknown  int64        `json:"unknown" doc:"Calls of which that cannot be said."`
	Groups   []TrialGroup `json:"groups" doc:"What is not the same, by tool and reason, the most calls first, at most 200."`
	LeftOut  int64        `json:"left_out" doc:"Calls that are not the same and in no group here."`
	TookMS   int64        `json:"took_ms"`
}

// TrialGroup is calls of one tool whose outcome differs for the same reason.
type TrialGroup struct {
	Tool     string    `json:"tool" doc:"server:tool"`
	Variant  string    `json:"tool_variant" words:"variant"`
	Called   string    `json:"called,omitempty" doc:"lane or name: how they were called."`
	Was      Outcome   `json:"was"`
	Would    Outcome   `json:"would"`
	Check    string    `json:"check,omitempty" words:"check" doc:"The check that would refuse, or that has refused."`
	Code     string    `json:"code,omitempty" doc:"The code of that refusal."`
	Status   string    `json:"status,omitempty" words:"status" doc:"The status for which the tool would be locked, or was."`
	Why      string    `json:"why" doc:"The reason in words: of the refusal, or why it is unknown."`
	Calls    int64     `json:"calls"`
	Last     time.Time `json:"last" doc:"When the newest of them was."`
	Examples []string  `json:"examples" doc:"Ids of up to three records, the newest first."`
}
