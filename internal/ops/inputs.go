package ops

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// Caller is who calls and from where. Without a SessionID it gets one.
type Caller = auth.Caller

// Nothing is the input of an operation that needs none.
type Nothing struct{}

// RecordRef names a record of the log.
type RecordRef struct {
	ID string `path:"id" doc:"The id of the record, or a prefix that fits only one."`
}

// ServerRef names a server.
type ServerRef struct {
	Name string `path:"name" doc:"The name of the server."`
}

// ToolRef names a tool.
type ToolRef struct {
	Server string `path:"name" doc:"The name of the server."`
	Tool   string `path:"tool" doc:"The tool's own name, percent-encoded as one segment: a slash in it is %2F."`
}

// ID is the id of the tool.
func (r ToolRef) ID() tool.ID { return tool.ID(r) }

// StatsQuery asks for statistics since a time; the zero time is as far back as
// the log is read.
type StatsQuery struct {
	Since time.Time `query:"start_time" doc:"Only calls from this time on."`
}

// RetrieveRequest asks for tools that fit a query, as an agent does.
type RetrieveRequest struct {
	Query           string
	Limit           int              // 0 = the configured one; clamped to 1–100
	Operation       policy.Operation // the zero value = any
	Detail          config.Detail    // "" = the configured one
	IncludeDisabled bool
	Caller          Caller
	// Told notes the instructions that an answer has, and reports whether the client had
	// the same before. Nil is a client of which that is not known.
	Told func(usage string) bool
}

// ReadRequest asks for a part of a large result.
type ReadRequest struct {
	Handle string
	Path   string
	Offset int
	Limit  int    // 0 = result.DefaultBytes or DefaultElements
	Select string // an expression of jq, instead of Offset and Limit; "": none
	Caller Caller
}

// NewServer is a server to add. Its texts are as in the file: they may hold
// references (${env:NAME}), which are resolved by the configuration alone.
type NewServer struct {
	Name string `json:"name" required:"true" doc:"The name of the server."`
	config.Launch
	// Trust is not for agents to say.
	Trust string `json:"trust" words:"trust" doc:"What becomes of tools that nobody has approved."`
	// Quarantined lets a person add a server that is to be reviewed first. What
	// an agent adds always is.
	Quarantined bool `json:"quarantined" doc:"Review the server before it is started."`
}

// Example is what a server to add looks like.
func (NewServer) Example() string {
	return `{"name": "files", "command": "npx", "args": ["-y", "…"]} or {"name": "remote", "url": "https://…"}`
}

// MostTogether is how many servers are added, or definitions approved, in one request.
const MostTogether = 500

// NewServers are servers to add together.
type NewServers struct {
	Servers []NewServer `json:"servers" required:"true" doc:"From 1 to 500 servers."`
}

// Example is what servers to add look like.
func (NewServers) Example() string {
	return `{"servers": [{"name": "files", "command": "npx", "args": ["-y", "…"]}]}`
}

// ServerChange is a key of a server with its new value; nil takes it out.
type ServerChange struct {
	ServerRef
	Key   string
	Value json.RawMessage
}

// Changeable is what can be changed about a server, one thing at a time. A launch
// that a person has reviewed and that changes is reviewed again; what is approved
// of its tools stays.
type Changeable struct {
	Enabled       bool            `json:"enabled" doc:"Whether the server runs."`
	Quarantined   bool            `json:"quarantined" enum:"true" doc:"Only true: a quarantine ends with an approval."`
	Trust         string          `json:"trust" null:"true" words:"trust" doc:"What becomes of tools that nobody has approved."`
	EnabledTools  []string        `json:"enabled_tools" null:"true" doc:"The only tools that may be called, names or patterns."`
	DisabledTools []string        `json:"disabled_tools" null:"true" doc:"Tools that may not be called, names or patterns."`
	InferHints    string          `json:"infer_hints" null:"true" words:"infer" doc:"What is made of tools that carry no hints, for this server."`
	HintOverrides json.RawMessage `json:"hint_overrides" null:"true" type:"object" doc:"Names or patterns of tools with the hints that count instead of the server's."`
	CallTimeout   string          `json:"call_timeout" null:"true" doc:"How long a call may take, such as 30s or 5m; the general one without it."`
	Command       []string        `json:"command" null:"true" doc:"The program to start and all its arguments."`
	URL           string          `json:"url" null:"true" doc:"Where the server answers."`
	WorkingDir    string          `json:"working_dir" null:"true" doc:"The directory that the command starts in."`
	Env           json.RawMessage `json:"env" null:"true" type:"object" doc:"Environment variables to set, by their names; null for one takes it out, the others stay."`
	Headers       json.RawMessage `json:"headers" null:"true" type:"object" doc:"Headers to set, by their names; null for one takes it out, the others stay."`
}

// ChangeableKeys are the keys of a server that can be set and taken out.
func ChangeableKeys() (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Changeable]()) {
		if f.Tag.Get("null") != "" {
			keys = append(keys, f.Tag.Get("json"))
		}
	}
	return keys
}

// Seen is what a decision is about: the fingerprint of what was seen.
type Seen struct {
	Fingerprint string `json:"fingerprint" required:"true" doc:"What was seen. When it is another by now, nothing happens: 409 CONFLICT."`
}

// Example is what a decision looks like.
func (Seen) Example() string {
	return `{"fingerprint": "…"} with the fingerprint of what you have seen`
}

// ServerDecision is a decision about a server.
type ServerDecision struct {
	ServerRef
	Seen
}

// ToolDecision is a decision about a tool.
type ToolDecision struct {
	ToolRef
	Seen
}

// ToolApproval is the approval of a tool's definition.
type ToolApproval struct {
	ToolDecision
	Keep string `json:"keep" enum:"destructive" doc:"destructive: the tool is called with call_tool_destructive from now on, whatever its server says. That is written into hint_overrides first; then the definition is approved."`
}

// NamedDefinition is a tool by its id, or something else that a server offers, and the
// definition of it that was seen.
type NamedDefinition struct {
	Name        string    `json:"name" doc:"The tool id, server:tool; of a prompt, resource or template the server, a colon and its name or address; of instructions the server."`
	Kind        tool.Kind `json:"kind,omitempty" doc:"prompt, resource, template or instructions; absent for a tool."`
	Fingerprint string    `json:"fingerprint" doc:"What was seen of it."`
}

// Ref is what it names. Its error is a *problem.Problem.
func (d NamedDefinition) Ref() (OfferRef, error) {
	if d.Kind == tool.KindTool {
		id, err := tool.ParseID(d.Name)
		if err != nil {
			return OfferRef{}, problem.Newf(problem.InvalidName, "'%s' is no name of a tool: %v.", problem.Brief(d.Name), err).WithHint("A tool is named server:tool.")
		}
		return OfferRef{id.Server, d.Kind, id.Tool}, nil
	}
	if kinds := tool.PrimitiveKinds(); !slices.Contains(kinds, d.Kind) {
		return OfferRef{}, problem.Newf(problem.InvalidParameter, "'%s' is no kind of what servers offer.", problem.Brief(string(d.Kind))).
			WithHint("Leave kind out for a tool, else it is prompt, resource, template or instructions.").With("parameter", "kind").With("allowed", kinds)
	}
	server, name, _ := strings.Cut(d.Name, ":")
	instructions, why := d.Kind == tool.KindInstructions, ""
	switch err := tool.CheckServerName(server); {
	case err != nil:
		why = err.Error()
	case instructions && name != "":
		why = "a server has its instructions once, which are named by it alone"
	case !instructions && name == "":
		why = "it is the server, a colon and the " + d.Kind.Label()
	}
	if why != "" {
		return OfferRef{}, problem.Newf(problem.InvalidName, "Invalid name '%s': %s.", problem.Brief(d.Name), why).
			WithHint("Write it as `mcpproxy approvals` does.")
	}
	return OfferRef{server, d.Kind, name}, nil
}

// ToolsApproval is the approval of many definitions, each by itself.
type ToolsApproval struct {
	Tools []NamedDefinition `json:"tools" required:"true" doc:"From 1 to 500 definitions."`
}

// Example is what an approval of many looks like.
func (ToolsApproval) Example() string {
	return `{"tools": [{"name": "server:tool", "fingerprint": "…"}]}`
}

// WaitingQuery asks for a page of what waits.
type WaitingQuery struct {
	Limit  int `query:"limit" min:"1" max:"1000" default:"500" doc:"How many tools, and how many offers, at most."`
	Offset int `query:"offset" min:"0" max:"10000000" doc:"How many of each to leave out before."`
}

// OfferRef names something that a server offers beside tools. Instructions have no
// name.
type OfferRef struct {
	Server string `path:"name" doc:"The name of the server."`
	Kind   tool.Kind
	Name   string `path:"item"`
}

// OfferDecision is a decision about it.
type OfferDecision struct {
	OfferRef
	Seen
}
