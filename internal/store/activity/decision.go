package activity

import "mcpproxy/internal/catalog/tool"

// Verdict is the decision about a call.
type Verdict string

const (
	Allowed Verdict = "allowed"
	Warned  Verdict = "warned" // allowed, with a warning
	Refused Verdict = "refused"
	Asked   Verdict = "asked" // allowed after a user approved the call
)

// Words returns all verdicts.
func (Verdict) Words() []string {
	return []string{string(Allowed), string(Warned), string(Refused), string(Asked)}
}

// CallStyle tells how a tool was called: with a calling tool or by its own name.
type CallStyle string

const (
	CalledInLane CallStyle = "lane" // with a calling tool, a lane's address, REST or the CLI
	CalledByName CallStyle = "name" // by its own name; the hints determine the lane
)

// Words returns all call styles.
func (CallStyle) Words() []string { return []string{string(CalledInLane), string(CalledByName)} }

// SchemaFit tells whether arguments match the schema of their tool.
type SchemaFit string

const (
	ArgumentsFit   SchemaFit = "fit"
	ArgumentsUnfit SchemaFit = "unfit"
)

// Words returns both values.
func (SchemaFit) Words() []string { return []string{string(ArgumentsFit), string(ArgumentsUnfit)} }

// ArgumentLane is the operation type that the arguments of a call require, and the rule that determined it.
type ArgumentLane struct {
	Operation string `json:"operation" words:"operation" doc:"The operation type that the arguments of the call ask for."`
	Word      string `json:"word,omitempty" doc:"The word in the argument that decided, or why the argument could not be parsed."`
	By        string `json:"by" words:"lane_by" doc:"The kind of the argument, which decides how it is parsed."`
	Argument  string `json:"argument" doc:"The path of the argument."`
	Declared  bool   `json:"declared,omitempty" doc:"Whether the setting lanes declares the argument. Otherwise it was detected in the schema, and can only move the call to a more harmful lane."`
	Unread    bool   `json:"unread,omitempty" doc:"Whether the argument could not be parsed completely."`
}

// Decision contains the facts that determined the decision about a call, as they were at that time. If the tool was
// unknown, its facts are missing.
type Decision struct {
	Outcome  Verdict   `json:"outcome"`
	Check    string    `json:"check,omitempty" words:"check" doc:"The check that rejected the call. The checks before it passed."`
	Called   CallStyle `json:"called,omitempty" doc:"How the tool was called. lane: with a calling tool; the caller chose the lane. name: by its own name; the hints decide the lane, no intent is declared, and only the server checks the arguments."`
	Alias    string    `json:"alias,omitempty" doc:"The alias under which the tool was called, as server:alias. Absent if the call used the server's own name."`
	Declared bool      `json:"declared,omitempty" doc:"Whether the caller declared an operation type, in addition to choosing the calling tool."`
	tool.DecisionFacts
	Status         string        `json:"status,omitempty" words:"status" doc:"Why the tool could not be called. Absent if it could."`
	Further        []string      `json:"further_statuses,omitempty" doc:"Further reasons why the tool could not be called, in order of precedence."`
	Arguments      SchemaFit     `json:"arguments,omitempty" doc:"Whether the arguments matched the tool's schema. Absent if they were not checked."`
	Lane           *ArgumentLane `json:"lane,omitempty" doc:"The operation type according to the arguments. Absent if the arguments were not evaluated."`
	Approval       string        `json:"approval,omitempty" doc:"The id of the approval or lease that allowed a held call. Absent if the call was not held."`
	Profile        string        `json:"profile,omitempty" doc:"The profiles that limited the caller."`
	ConfigRevision string        `json:"config_revision,omitempty" doc:"The revision of the configuration that was active."`
}
