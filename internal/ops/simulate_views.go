package ops

import "time"

// Outcome is the outcome of a recorded call under a candidate configuration.
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

// Trial is the result of evaluating recorded calls under a candidate configuration.
type Trial struct {
	Since    time.Time    `json:"since"`
	Revision string       `json:"config_revision" doc:"The revision of the evaluated configuration."`
	InForce  string       `json:"in_force_revision" doc:"The revision of the current configuration."`
	Calls    int64        `json:"calls" doc:"The number of evaluated calls. Each repetition of a rejected call counts."`
	Others   int64        `json:"other_configurations" doc:"The number of these calls that were decided under another configuration than the current one. Their result can differ even without a change."`
	Same     int64        `json:"same" doc:"The number of calls with the same outcome."`
	Refused  int64        `json:"refused" doc:"The number of calls that would have been rejected instead of allowed."`
	Allowed  int64        `json:"allowed" doc:"The number of calls that would have been allowed instead of rejected or held."`
	Asked    int64        `json:"asked" doc:"The number of calls that would have been held for approval instead of allowed or rejected."`
	Unknown  int64        `json:"unknown" doc:"The number of calls whose outcome cannot be determined."`
	Groups   []TrialGroup `json:"groups" doc:"The calls with another outcome, by tool and reason, largest group first, at most 200 groups."`
	LeftOut  int64        `json:"left_out" doc:"The number of calls with another outcome that are in none of the groups."`
	TookMS   int64        `json:"took_ms"`
}

// TrialGroup is a group of calls to one tool whose outcomes differ for the same reason.
type TrialGroup struct {
	Tool     string    `json:"tool" doc:"The tool id: server:tool."`
	Variant  string    `json:"tool_variant" words:"variant"`
	Called   string    `json:"called,omitempty" doc:"How the tool was called. lane: with a calling tool. name: by its own name."`
	Was      Outcome   `json:"was"`
	Would    Outcome   `json:"would"`
	Check    string    `json:"check,omitempty" words:"check" doc:"The check that would reject the calls, or that rejected them."`
	Code     string    `json:"code,omitempty" doc:"The error code of the rejection. Absent if there is none."`
	Status   string    `json:"status,omitempty" words:"status" doc:"The status that would lock, or locked, the tool. Absent if the tool was not the reason."`
	Why      string    `json:"why" doc:"The reason for the outcome in words."`
	Calls    int64     `json:"calls"`
	Last     time.Time `json:"last" doc:"The time of the most recent of these calls."`
	Examples []string  `json:"examples" doc:"The ids of up to three activity records, newest first."`
}
