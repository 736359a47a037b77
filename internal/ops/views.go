package ops

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// mapSlice returns the results of f for the elements of a list, nil for an empty one.
func mapSlice[T, R any](all []T, f func(T) R) (out []R) {
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

// ServerView is a server as shown by upstream_servers, GET /servers and `upstream list`. Secrets are masked.
type ServerView struct {
	Name            string               `json:"name"`
	Protocol        string               `json:"protocol" doc:"The transport: stdio, http or sse."`
	Enabled         bool                 `json:"enabled"`
	Quarantined     bool                 `json:"quarantined"`
	Stage           ReviewStage          `json:"stage,omitempty" enum:"launch,definitions" doc:"The stage of the review. Absent if the server is not quarantined."`
	Trust           string               `json:"trust,omitempty" words:"trust" doc:"Which definitions are accepted automatically: manual (none), scan or auto."`
	ProposedBy      string               `json:"proposed_by,omitempty" doc:"The actor that proposed the server. Absent if the server is in the configuration."`
	State           string               `json:"state" doc:"The state: stopped, connecting, ready, failed (until the next attempt), idle (until it is used), needs_login, needs_secret or needs_variable (see last_error)."`
	ToolCount       int                  `json:"tool_count"`
	Lazy            bool                 `json:"lazy,omitempty" doc:"Whether the server starts only at its first call."`
	Session         string               `json:"session,omitempty" doc:"per_client: each client has its own session with the server. shared: all clients use the session of MCPProxy. auto: only the clients that need it have their own; see session_needs. Absent if the server is proposed."`
	SessionNeeds    []upstream.KnownNeed `json:"session_needs,omitempty" doc:"Why clients have their own session although session is auto. sampling, elicitation, roots: the server has sent such a request, so clients with that capability have their own session. capabilities: the server lists other tools to clients with one of these capabilities, so they have their own session. state: the server is known to keep state for each session, so all clients have their own. Absent if no client has one."`
	Hint            string               `json:"hint,omitempty" doc:"How to list its tools if it was never started. Absent otherwise."`
	NeedsLogin      bool                 `json:"needs_login,omitempty" doc:"Whether the user must log in to the server."`
	Login           *ServerLogin         `json:"login,omitempty" doc:"The login to the server, if it needs attention. Absent if it works, or if the server requires none."`
	Detail          string               `json:"detail,omitempty" doc:"The progress of a server that is not ready, or the reason, for display. Absent if it is ready."`
	Step            upstream.StartStep   `json:"step,omitempty" doc:"The step of a connecting server: queued (until others have started), installing or starting."`
	StepSince       *time.Time           `json:"step_since,omitempty"`
	Trouble         string               `json:"trouble,omitempty" doc:"Why the package manager cannot download the server now, such as a missing network connection. Absent if there is no problem."`
	Ahead           int                  `json:"ahead,omitempty" doc:"The number of servers that start before a queued server."`
	LastError       string               `json:"last_error,omitempty" doc:"The error that ended the last connection or attempt. It can contain the last line of the server's stderr. Absent once the server is ready again."`
	LastErrorAt     *time.Time           `json:"last_error_at,omitempty"`
	Failure         string               `json:"failure,omitempty" doc:"The form of last_error for agents: a code and a text of MCPProxy, without text from the server."`
	Tools           *Counts              `json:"tools,omitempty" doc:"The number of tools by status. Absent if all tools can be called."`
	Unhinted        *Unhinted            `json:"unhinted,omitempty" doc:"The tools without hints that infer_hints: enforce would affect. Absent if infer_hints is set, or if there are none."`
	Offers          *OfferCounts         `json:"offers,omitempty" doc:"The number of known prompts, resources, templates and instructions of the server. Absent if there are none."`
	Command         string               `json:"command,omitempty"`
	Args            []string             `json:"args,omitempty"`
	Pin             string               `json:"pin,omitempty" doc:"The exact version and integrity of the package that the command starts. Absent if the command chooses the version."`
	URL             string               `json:"url,omitempty"`
	Sandbox         *SandboxView         `json:"sandbox,omitempty" doc:"How the process of the server is limited. Absent if it has no sandbox."`
	PID             int                  `json:"pid,omitempty"`
	Restarts        int                  `json:"restarts,omitempty"`
	Since           *time.Time           `json:"since,omitempty" doc:"The time at which the server entered its state."`
	RetryAt         *time.Time           `json:"retry_at,omitempty"`
	ProtocolVersion string               `json:"protocol_version,omitempty"`
	ServerInfo      json.RawMessage      `json:"server_info,omitempty"`
	Warnings        []string             `json:"warnings,omitempty" doc:"Violations of the MCP specification. In the response to an added server also the proposals that were withdrawn and the servers with similar names."`
}

// SandboxView describes the sandbox of a server.
type SandboxView struct {
	Mode        string   `json:"mode" enum:"on,strict,container"`
	Text        string   `json:"text" doc:"What the process may read, write and reach, in words."`
	Trusted     bool     `json:"trusted,omitempty" doc:"Whether tools without hints count as read-only (trust_sandbox), because the process can write nothing and reach no network."`
	NotEnforced []string `json:"not_enforced,omitempty" doc:"The limits that this machine cannot enforce, each with what to do. The server starts without them only if best_effort is true."`
	Notes       []string `json:"notes,omitempty" doc:"What is weaker on this machine, although no key of the sandbox is about it."`
}

// ServerViews lists all servers.
type ServerViews struct {
	Servers []ServerView `json:"servers"`
	Paused  bool         `json:"paused,omitempty" doc:"Whether MCPProxy rejects all calls, because a user has paused them. Absent if calls are allowed."`
}

// OfferCounts counts the prompts, resources, templates and instructions of a server. Kinds that the server does not
// have are left out.
type OfferCounts struct {
	Instructions *OfferCount `json:"instructions,omitempty"`
	Prompts      *OfferCount `json:"prompts,omitempty"`
	Resources    *OfferCount `json:"resources,omitempty"`
	Templates    *OfferCount `json:"templates,omitempty"`
}

// OfferCount counts one kind: how many of it wait for approval, and how many a user has blocked. Blocked ones do not wait.
type OfferCount struct {
	Total   int `json:"total"`
	Waiting int `json:"waiting,omitempty"`
	Blocked int `json:"blocked,omitempty"`
}

// ToolView is a tool as shown by the REST API and the CLI.
type ToolView struct {
	Name                string          `json:"name" doc:"The tool id: server:tool."`
	Server              string          `json:"server"`
	Tool                string          `json:"tool"`
	Title               string          `json:"title,omitempty"`
	Description         string          `json:"description" doc:"The description that agents get."`
	DeclaredDescription string          `json:"declared_description,omitempty" doc:"The server's description. Absent if agents get it unchanged."`
	Settings            *ToolSettings   `json:"settings,omitempty" doc:"The user's settings for the tool, from tools of its server. Absent if there are none."`
	ShadowedBy          string          `json:"shadowed_by,omitempty" doc:"The tool of the same server whose alias is the name of this tool. Agents get that tool under the name; this one is available only at /mcp/servers/{server}."`
	InputSchema         json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitempty"`
	Annotations         json.RawMessage `json:"annotations" doc:"The effective hints. Hints that neither the server nor hint_overrides set are absent."`
	DeclaredAnnotations json.RawMessage `json:"declared_annotations,omitempty" doc:"The hints that the server declared. Absent if they are equal to the effective hints."`
	CallWith            string          `json:"call_with" words:"variant"`
	InferredOperation   string          `json:"inferred_operation,omitempty" words:"operation" doc:"The inferred operation type of a tool without hints. Absent if the tool has hints, or if infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"The reason for inferred_operation."`
	LaneBy              string          `json:"lane_by,omitempty" doc:"The argument that decides the lane of a call, and its kind, such as $.sql (sql). Absent if there is none, or if judge_arguments is off."`
	LaneDeclared        bool            `json:"lane_declared,omitempty" doc:"Whether the setting lanes declares the argument. Then it takes precedence over the hints."`
	Status              string          `json:"status,omitempty" words:"shown status" doc:"Why the tool cannot be called. Absent if it can. for_clients: the tool is not locked, but only clients on /mcp/servers/{server} that support requests from the server can call it."`
	Deprecated          bool            `json:"deprecated,omitempty" doc:"Whether the description or _meta of the tool says that it is deprecated. A search ranks the named successor first."`
	Trust               *Trust          `json:"trust,omitempty" doc:"The approval of the tool. Absent in search results."`
	Score               float64         `json:"score,omitempty"`
	Why                 []Why           `json:"why,omitempty" doc:"Why a search found the tool, most important reason first. Absent unless the request sets explain."`
}

// ToolSettings are the user's name and texts for a tool.
type ToolSettings struct {
	Alias          string `json:"alias,omitempty" doc:"The name that agents see instead of the server's name of the tool."`
	Description    string `json:"description,omitempty" doc:"Replaces the server's description."`
	AddDescription string `json:"add_description,omitempty" doc:"Follows the server's description."`
	Always         bool   `json:"always,omitempty" doc:"Whether each answer of retrieve_tools begins with the tool."`
}

// Why is one reason for which a search found a tool.
type Why struct {
	Asked  string   `json:"asked" doc:"The matched part of the query: a word, or the whole query if it is a name."`
	Found  []string `json:"found" doc:"The words of the tool that match."`
	How    string   `json:"how" doc:"The kind of match: same, stem (another form of the word), joined, synonym, misspelt, named, or used (the tool was called after searches with these words)."`
	Fields []string `json:"fields" doc:"The fields that contain the words: name, server, title, summary (the first sentence of the description), description, parameter, parameter_text."`
	Share  float64  `json:"share,omitempty" doc:"The share of the score. Absent for named and used."`
}

// Status is the state of the daemon.
type Status struct {
	Version       string          `json:"version"`
	PID           int             `json:"pid"`
	StartedAt     time.Time       `json:"started_at"`
	UptimeSeconds int64           `json:"uptime_seconds"`
	Servers       StatusServers   `json:"servers"`
	Tools         StatusTools     `json:"tools"`
	Offers        OfferCount      `json:"offers" doc:"The number of known prompts, resources, templates and instructions."`
	Surfaces      []Surface       `json:"surfaces"`
	ConfigPath    string          `json:"config_path"`
	ConfigError   string          `json:"config_error,omitempty" doc:"Why the configuration file was rejected; the previous configuration stays active. Absent if the file is valid."`
	NeedsRestart  []string        `json:"needs_restart,omitempty" doc:"Changed settings that take effect at the next start."`
	Unconfirmed   int             `json:"unconfirmed,omitempty" doc:"The number of changes in the configuration file that grant more access and wait for confirmation. GET /config lists them."`
	Warnings      []string        `json:"warnings,omitempty"`
	DataDir       string          `json:"data_dir"`
	Activity      activity.Health `json:"activity"`
	Definitions   Definitions     `json:"definitions"`
	Held          StatusHeld      `json:"held" doc:"The number of pending calls and active leases."`
	Pause         *PauseView      `json:"pause,omitempty" doc:"Who paused all calls, and why. Absent if calls are not paused."`
}

// StatusHeld counts the pending calls and the active leases.
type StatusHeld struct {
	Pending int `json:"pending" doc:"The number of calls that wait for approval."`
	Leases  int `json:"leases" doc:"The number of active leases."`
}

// Definitions contains the size of the definitions that agents load.
type Definitions struct {
	LoadedBytes int `json:"loaded_bytes" doc:"The size of the tools that an agent loads on /mcp, in bytes."`
	AllBytes    int `json:"all_bytes" doc:"The size of all known tools as their servers list them, in bytes."`
}

// StatusServers counts the servers by condition.
type StatusServers struct {
	Total   int `json:"total"`
	Enabled int `json:"enabled"`
	Ready   int `json:"ready"`
	Idle    int `json:"idle" doc:"The number of idle servers: they start when they are used. Their tools can be called."`

	NotReady []NotReady `json:"not_ready,omitempty" doc:"The enabled servers that are neither ready nor idle."`
}

// NotReady is a server that cannot currently be used.
type NotReady struct {
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Detail  string     `json:"detail" doc:"The progress of the server, or why it is not ready, for display."`
	Since   *time.Time `json:"since,omitempty" doc:"The time at which the server entered its state."`
	RetryAt *time.Time `json:"retry_at,omitempty"`
}

// StatusTools counts the tools by condition.
type StatusTools struct {
	Total    int `json:"total"`
	Callable int `json:"callable"`
}

// Surface is an address on which MCPProxy serves clients.
type Surface struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Counts counts the tools of a server by status. In JSON, it is an object with the member callable and a member for
// each other status that has tools. The last two counts are ForClients and Blocked.
type Counts [policy.StatusCount + 2]int

// ForClients is the status of an unlocked tool that requires a client with sampling or elicitation, at the server's own
// address (ADR 0053).
const ForClients = "for_clients"

// CountForClients is the index of ForClients in Counts.
const CountForClients = policy.StatusCount

// Blocked is the status of a tool whose definition a user has blocked. It does not wait for approval.
const Blocked = "blocked"

// CountBlocked is the index of Blocked in Counts.
const CountBlocked = policy.StatusCount + 1

// displayedToolStatus returns the displayed status of a tool, or "" if the tool can be called.
func displayedToolStatus(t *catalog.Tool) string {
	if t.Callable() && t.ForClients {
		return ForClients
	}
	return statusWord(t.Status, t.Blocked)
}

// statusWord returns the displayed status of a definition.
func statusWord(s policy.ToolStatus, blocked bool) string {
	if s == policy.PendingApproval && blocked {
		return Blocked
	}
	return s.String()
}

// AddTool adds a tool to the counts.
func (c *Counts) AddTool(t *catalog.Tool) {
	switch displayedToolStatus(t) {
	case ForClients:
		c[CountForClients]++
	case Blocked:
		c[CountBlocked]++
	default:
		c[t.Status]++
	}
}

// WithBlockedAsPending returns the counts with the statuses that agents see. It counts a blocked tool as pending
// approval.
func (c *Counts) WithBlockedAsPending() *Counts {
	if c == nil || c[CountBlocked] == 0 {
		return c
	}
	told := *c
	told[policy.PendingApproval] += told[CountBlocked]
	told[CountBlocked] = 0
	return &told
}

// ByStatus returns the nonzero counts by status.
func (c *Counts) ByStatus() map[string]int {
	all := map[string]int{}
	for i, n := range c {
		switch {
		case n == 0:
		case i == CountForClients:
			all[ForClients] = n
		case i == CountBlocked:
			all[Blocked] = n
		default:
			all[policy.ToolStatus(i).Word()] = n
		}
	}
	return all
}

// countByStatus counts tools by status. It returns nil if all tools can be called.
func countByStatus(tools []*catalog.Tool) *Counts {
	var c Counts
	for _, t := range tools {
		c.AddTool(t)
	}
	if c[policy.Callable] == len(tools) {
		return nil
	}
	return &c
}

// Words returns the names of the JSON members, callable first.
func (Counts) Words() []string {
	return slices.Concat([]string{policy.Callable.Word()}, mapSlice(policy.Statuses(), policy.ToolStatus.Word), []string{ForClients, Blocked})
}

// MarshalJSON implements json.Marshaler.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := strconv.AppendInt([]byte(`{"callable":`), int64(c[policy.Callable]), 10)
	reason := func(word string, n int) {
		if n > 0 {
			out = strconv.AppendInt(append(out, `,"`+word+`":`...), int64(n), 10)
		}
	}
	for _, s := range policy.Statuses() {
		reason(s.Word(), c[s])
	}
	reason(ForClients, c[CountForClients])
	reason(Blocked, c[CountBlocked])
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	var members map[string]int
	err := json.Unmarshal(raw, &members)
	for s := range policy.ToolStatus(policy.StatusCount) {
		c[s] = members[s.Word()]
	}
	c[CountForClients], c[CountBlocked] = members[ForClients], members[Blocked]
	return err
}
