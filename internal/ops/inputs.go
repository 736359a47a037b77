package ops

import (
	"context"
	"encoding/json"
	"io"
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

// Caller is the actor of an operation and the surface that it uses. If it has no SessionID, it gets one.
type Caller = auth.Caller

// Nothing is the input of an operation without input.
type Nothing struct{}

// RecordRef identifies a record of the activity log.
type RecordRef struct {
	ID string `path:"id" doc:"The id of the record, or a unique prefix of it."`
}

// ServerRef identifies a server.
type ServerRef struct {
	Name string `path:"name" doc:"The name of the server."`
}

// ToolRef identifies a tool.
type ToolRef struct {
	Server string `path:"name" doc:"The name of the server."`
	Tool   string `path:"tool" doc:"The tool's own name, percent-encoded as one segment, with %2F for a slash."`
}

// ID returns the ID of the tool.
func (r ToolRef) ID() tool.ID { return tool.ID(r) }

// definition returns the reference to the tool's definition.
func (r ToolRef) definition() PrimitiveRef { return PrimitiveRef{r.Server, tool.KindTool, r.Tool} }

// StatsQuery selects the calls for statistics. It selects the calls since a time, or all calls if the time is zero.
type StatsQuery struct {
	Since time.Time `query:"start_time" doc:"The start of the period: only calls at or after this time are included."`
}

// RetrieveRequest is an agent's search for tools.
type RetrieveRequest struct {
	Query           string
	Limit           int                    // 0 means the configured limit; clamped to 1–100
	Operation       policy.Operation       // the zero value means any
	Detail          config.ToolDetailLevel // "" means the configured level
	IncludeDisabled bool
	Caller          Caller
	// UsageSeen records the usage instructions in the answer, and reports whether the client has received the same
	// before. If it is nil, this is unknown.
	UsageSeen func(usage string) bool
}

// ReadResultRequest is a request for a part of a large result.
type ReadResultRequest struct {
	Handle string
	Path   string
	Offset int
	Limit  int    // 0 means result.DefaultBytes or DefaultElements
	Select string // a jq expression, instead of Offset and Limit; "" if not used
	Caller Caller
}

// AddServerRequest is a server to add. Its texts may contain references (${env:NAME}), which are resolved only when the
// configuration is read.
type AddServerRequest struct {
	Name string `json:"name" required:"true" doc:"The name of the server."`
	config.Launch
	// Trust is ignored for agents.
	Trust string `json:"trust" words:"trust" doc:"Which new definitions are accepted automatically."`
	// Quarantined requires a review before the server starts. Servers that agents add always require it.
	Quarantined bool `json:"quarantined" doc:"Whether the server is quarantined: it starts only after a review."`
}

// Example returns an example for the OpenAPI document.
func (AddServerRequest) Example() string {
	return `{"name": "files", "command": "npx", "args": ["-y", "…"]} or {"name": "remote", "url": "https://…"}`
}

// MaxBatch limits the number of servers or definitions in one request.
const MaxBatch = 500

// AddServersRequest are servers to add in one request.
type AddServersRequest struct {
	Servers []AddServerRequest `json:"servers" required:"true" doc:"The servers to add, from 1 to 500."`
}

// Example returns an example for the OpenAPI document.
func (AddServersRequest) Example() string {
	return `{"servers": [{"name": "files", "command": "npx", "args": ["-y", "…"]}]}`
}

// ServerChange sets a key of a server, or removes it if the value is nil.
type ServerChange struct {
	ServerRef
	Key   string
	Value json.RawMessage
}

// ChangeableServerSettings are the server settings that a request can change. If the launch was reviewed, a changed
// launch needs a new review. The approvals of the server's tools are kept.
type ChangeableServerSettings struct {
	Enabled       bool            `json:"enabled" doc:"Whether the server is enabled."`
	Quarantined   bool            `json:"quarantined" enum:"true" doc:"Must be true, which puts the server into quarantine. Only an approval ends a quarantine."`
	Trust         string          `json:"trust" null:"true" words:"trust" doc:"Which new definitions are accepted automatically."`
	EnabledTools  []string        `json:"enabled_tools" null:"true" doc:"Names or patterns of the tools that may be called. All other tools are disabled."`
	DisabledTools []string        `json:"disabled_tools" null:"true" doc:"Names or patterns of tools that may not be called."`
	InferHints    string          `json:"infer_hints" null:"true" words:"infer" doc:"How MCPProxy treats tools without hints of this server."`
	HintOverrides json.RawMessage `json:"hint_overrides" null:"true" type:"object" doc:"Hints that replace those of the server, by name or pattern of tools."`
	CallTimeout   string          `json:"call_timeout" null:"true" doc:"The maximum duration of a call, such as 30s or 5m. Default: the global call_timeout."`
	Command       []string        `json:"command" null:"true" doc:"The program to start, followed by all its arguments."`
	URL           string          `json:"url" null:"true" doc:"The URL of the server."`
	WorkingDir    string          `json:"working_dir" null:"true" doc:"The working directory of the command."`
	Sandbox       json.RawMessage `json:"sandbox" null:"true" type:"object" doc:"How to limit the process: mode (on, strict or container), read, write, network (none or all), image and best_effort."`
	TrustSandbox  bool            `json:"trust_sandbox" null:"true" doc:"Whether tools without hints count as read-only if the sandbox lets the process write nothing and reach no network."`
	Env           json.RawMessage `json:"env" null:"true" type:"object" doc:"Environment variables to set, by name. Null removes a variable. Variables that are not named do not change."`
	Headers       json.RawMessage `json:"headers" null:"true" type:"object" doc:"HTTP headers to set, by name. Null removes a header. Headers that are not named do not change."`
}

// ChangeableServerKeys returns the server keys that a request can set and remove.
func ChangeableServerKeys() (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[ChangeableServerSettings]()) {
		if f.Tag.Get("null") != "" {
			keys = append(keys, f.Tag.Get("json"))
		}
	}
	return keys
}

// ChangeableToolSettings are the settings of a tool that a request can change.
type ChangeableToolSettings struct {
	Alias          string `json:"alias" null:"true" doc:"The name that agents see instead of the server's name of the tool. The server's name still works in calls."`
	Description    string `json:"description" null:"true" doc:"Replaces the server's description for agents."`
	AddDescription string `json:"add_description" null:"true" doc:"Follows the server's description, in a new paragraph."`
	Always         bool   `json:"always" null:"true" doc:"Whether each answer of retrieve_tools begins with the tool."`
}

// ToolChange changes the settings of a tool.
type ToolChange struct {
	ToolRef
	Changes []config.ToolSettingChange
}

// SeenFingerprint contains the fingerprint of the definition that the user saw.
type SeenFingerprint struct {
	Fingerprint string `json:"fingerprint" required:"true" doc:"The fingerprint of the reviewed definition or launch. If it has changed since, the request is rejected with 409 CONFLICT."`
}

// Example returns an example for the OpenAPI document.
func (SeenFingerprint) Example() string {
	return `{"fingerprint": "…"} with the fingerprint that you reviewed`
}

// clipped returns the fingerprint for a record.
func (s SeenFingerprint) clipped() string { return problem.ClipName(s.Fingerprint) }

// ServerDecision is a decision about a server.
type ServerDecision struct {
	ServerRef
	SeenFingerprint
}

// ToolDecision is a decision about a tool.
type ToolDecision struct {
	ToolRef
	SeenFingerprint
}

// ToolApproval is the approval of a tool's definition.
type ToolApproval struct {
	ToolDecision
	Keep string `json:"keep" enum:"destructive" doc:"destructive: require call_tool_destructive for the tool from now on. This is written to hint_overrides before the definition is approved."`
}

// NamedDefinition identifies a definition and contains the fingerprint that the user saw.
type NamedDefinition struct {
	Name        string              `json:"name" doc:"The id of the definition. Tool: server:tool. Prompt: server:name. Resource or template: server:address. Instructions: the name of the server."`
	Kind        tool.DefinitionKind `json:"kind,omitempty" doc:"prompt, resource, template or instructions; absent for a tool."`
	Fingerprint string              `json:"fingerprint" doc:"The fingerprint of the reviewed definition."`
}

// ParseRef parses the name. The error is a *problem.Problem.
func (d NamedDefinition) ParseRef() (PrimitiveRef, error) {
	if d.Kind == tool.KindTool {
		id, err := tool.ParseID(d.Name)
		if err != nil {
			return PrimitiveRef{}, problem.Newf(problem.InvalidName, "'%s' is not a tool name: %v.", problem.ClipName(d.Name), err).WithHint("A tool is named server:tool.")
		}
		return PrimitiveRef{id.Server, d.Kind, id.Tool}, nil
	}
	if kinds := tool.PrimitiveKinds(); !slices.Contains(kinds, d.Kind) {
		return PrimitiveRef{}, problem.Newf(problem.InvalidParameter, "'%s' is not a kind of definition.", problem.ClipName(string(d.Kind))).
			WithHint("For a tool, leave kind out. Otherwise use prompt, resource, template or instructions.").With("parameter", "kind").With("allowed", kinds)
	}
	server, name, _ := strings.Cut(d.Name, ":")
	instructions, why := d.Kind == tool.KindInstructions, ""
	switch err := tool.CheckServerName(server); {
	case err != nil:
		why = err.Error()
	case instructions && name != "":
		why = "a server has one set of instructions, identified by the name of the server alone"
	case !instructions && name == "":
		why = "it is the server, a colon and the " + d.Kind.Label()
	}
	if why != "" {
		return PrimitiveRef{}, problem.Newf(problem.InvalidName, "Invalid name '%s': %s.", problem.ClipName(d.Name), why).
			WithHint("Write it as in the output of `mcpproxy approvals`.")
	}
	return PrimitiveRef{server, d.Kind, name}, nil
}

// ToolsApproval is the approval of several definitions.
type ToolsApproval struct {
	Tools []NamedDefinition `json:"tools" required:"true" doc:"The definitions to approve, from 1 to 500."`
}

// Example returns an example for the OpenAPI document.
func (ToolsApproval) Example() string {
	return `{"tools": [{"name": "server:tool", "fingerprint": "…"}]}`
}

// PendingApprovalsQuery selects a page of the pending approvals.
type PendingApprovalsQuery struct {
	Limit  int `query:"limit" min:"1" max:"1000" default:"500" doc:"The maximum number of tools, and of other definitions."`
	Offset int `query:"offset" min:"0" max:"10000000" doc:"The number of tools, and of other definitions, to skip."`
}

// PrimitiveRef identifies a prompt, resource or template of a server, or its instructions, which have no name.
type PrimitiveRef struct {
	Server string `path:"name" doc:"The name of the server."`
	Kind   tool.DefinitionKind
	Name   string `path:"item"`
}

// PrimitiveDecision is a decision about the definition of a prompt, resource, template or instructions.
type PrimitiveDecision struct {
	PrimitiveRef
	SeenFingerprint
}

// StreamFunc writes an answer until it is complete or ctx is done. Each write is flushed, so it should consist of whole
// lines. An error before the first write is returned to the client. A later error aborts the answer.
type StreamFunc func(ctx context.Context, w io.Writer) error

// Download is a stream with its media type and a suggested file name.
type Download struct {
	Type, Name string
	Stream     StreamFunc
}

// ShellQuote quotes a word for a shell.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+:@%,=", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
