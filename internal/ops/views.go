package ops

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// ServerView is a server as upstream_servers, GET /servers and `upstream list` show it. Secrets are masked.
type ServerView struct {
	Name            string             `json:"name"`
	Protocol        string             `json:"protocol" doc:"How the server is reached: stdio, http or sse."`
	Enabled         bool               `json:"enabled"`
	Quarantined     bool               `json:"quarantined"`
	Stage           ReviewStage        `json:"stage,omitempty" enum:"launch,definitions" doc:"How far the review of a quarantined server is."`
	Trust           string             `json:"trust,omitempty" words:"trust" doc:"Which definitions are accepted automatically: manual (none), scan or auto."`
	ProposedBy      string             `json:"proposed_by,omitempty" doc:"The proposer of a server that is not in the configuration yet."`
	State           string             `json:"state" doc:"stopped, connecting, ready, failed (until the next try), idle (until it is used), needs_login, needs_secret or needs_variable (see last_error)."`
	ToolCount       int                `json:"tool_count"`
	Lazy            bool               `json:"lazy,omitempty" doc:"Not started before its first call."`
	Session         string             `json:"session,omitempty" doc:"shared, if clients that connect to the single server use the session of MCPProxy. Absent: each has its own."`
	Hint            string             `json:"hint,omitempty" doc:"How to get its tools, if it was never started."`
	NeedsLogin      bool               `json:"needs_login,omitempty" doc:"The server requires a login, which only the user can do."`
	Detail          string             `json:"detail,omitempty" doc:"The progress of a server that is not ready, or the reason, for display."`
	Step            upstream.StartStep `json:"step,omitempty" doc:"How far a connecting server is: queued (until others have started), installing or starting."`
	StepSince       *time.Time         `json:"step_since,omitempty"`
	Trouble         string             `json:"trouble,omitempty" doc:"What keeps a package manager from fetching the server now, such as a network that is away."`
	Ahead           int                `json:"ahead,omitempty" doc:"How many servers start before a queued one."`
	LastError       string             `json:"last_error,omitempty" doc:"What ended the last connection or try, until the server is ready again. It may hold the last line of its standard error."`
	LastErrorAt     *time.Time         `json:"last_error_at,omitempty"`
	Failure         string             `json:"failure,omitempty" doc:"last_error as agents are told it: a code with words of MCPProxy alone."`
	Tools           *Counts            `json:"tools,omitempty" doc:"Only when at least one tool cannot be called."`
	Unhinted        *Unhinted          `json:"unhinted,omitempty" doc:"What infer_hints: enforce would be good for. Absent when it was chosen what is inferred, or nothing is gained."`
	Offers          *OfferCounts       `json:"offers,omitempty" doc:"The known prompts, resources, templates and instructions of the server. Absent if there are none."`
	Command         string             `json:"command,omitempty"`
	Args            []string           `json:"args,omitempty"`
	URL             string             `json:"url,omitempty"`
	PID             int                `json:"pid,omitempty"`
	Restarts        int                `json:"restarts,omitempty"`
	Since           *time.Time         `json:"since,omitempty" doc:"When the server entered its state."`
	RetryAt         *time.Time         `json:"retry_at,omitempty"`
	ProtocolVersion string             `json:"protocol_version,omitempty"`
	ServerInfo      json.RawMessage    `json:"server_info,omitempty"`
	Warnings        []string           `json:"warnings,omitempty" doc:"Violations of the MCP specification. After an addition also withdrawn proposals, and similar names."`
}

// ServerViews lists all servers.
type ServerViews struct {
	Servers []ServerView `json:"servers"`
}

// OfferCounts counts the prompts, resources, templates and instructions of a server. Kinds without any are left out.
type OfferCounts struct {
	Instructions *OfferCount `json:"instructions,omitempty"`
	Prompts      *OfferCount `json:"prompts,omitempty"`
	Resources    *OfferCount `json:"resources,omitempty"`
	Templates    *OfferCount `json:"templates,omitempty"`
}

// OfferCount counts one kind, and how many of it wait for approval.
type OfferCount struct {
	Total   int `json:"total"`
	Waiting int `json:"waiting,omitempty"`
}

// ToolView is a tool as REST and the CLI show it.
type ToolView struct {
	Name                string          `json:"name" doc:"The tool id: server:tool."`
	Server              string          `json:"server"`
	Tool                string          `json:"tool"`
	Title               string          `json:"title,omitempty"`
	Description         string          `json:"description"`
	InputSchema         json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitempty"`
	Annotations         json.RawMessage `json:"annotations" doc:"The effective hints; only those that are said."`
	DeclaredAnnotations json.RawMessage `json:"declared_annotations,omitempty" doc:"What the server said, where the effective hints differ."`
	CallWith            string          `json:"call_with" words:"variant"`
	InferredOperation   string          `json:"inferred_operation,omitempty" words:"operation" doc:"What a tool without hints seems to do. Absent when it says so itself, or infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"Why it seems so."`
	LaneBy              string          `json:"lane_by,omitempty" doc:"The argument that decides the lane of a call, and its kind: $.sql (sql). Absent if there is none, or judge_arguments is off."`
	LaneDeclared        bool            `json:"lane_declared,omitempty" doc:"Whether lanes declares it: the argument takes precedence over the hints."`
	Status              string          `json:"status,omitempty" words:"shown status" doc:"Why the tool cannot be called; absent if it can. for_clients: it is not locked, but available only to clients that its server can ask something, on /mcp/servers/{server}."`
	Deprecated          bool            `json:"deprecated,omitempty" doc:"The tool says so, in its description or its _meta. A search finds what it names as its successor first."`
	Trust               *Trust          `json:"trust,omitempty" doc:"What is decided about the tool. Absent in the answer of a search."`
	Score               float64         `json:"score,omitempty"`
	Why                 []Why           `json:"why,omitempty" doc:"Why a search found the tool, the weightiest reason first; only when asked for."`
}

// Why is one reason for which a search found a tool.
type Why struct {
	Asked  string   `json:"asked" doc:"What of the query: a word of it, or all when it is a name."`
	Found  []string `json:"found" doc:"The words of the tool that answer it."`
	How    string   `json:"how" doc:"same, stem (another form of the word), joined, synonym, misspelt, named, or used (the tool was called after searches with such words)."`
	Fields []string `json:"fields" doc:"Where they occur: name, server, title, summary (the first sentence of the description), description, parameter, parameter_text."`
	Share  float64  `json:"share,omitempty" doc:"Their share of the score; absent for a name, which ranks before all words, and for use."`
}

// Status is the state of the daemon.
type Status struct {
	Version       string          `json:"version"`
	PID           int             `json:"pid"`
	StartedAt     time.Time       `json:"started_at"`
	UptimeSeconds int64           `json:"uptime_seconds"`
	Servers       StatusServers   `json:"servers"`
	Tools         StatusTools     `json:"tools"`
	Offers        OfferCount      `json:"offers" doc:"The known prompts, resources, templates and instructions."`
	Surfaces      []Surface       `json:"surfaces"`
	ConfigPath    string          `json:"config_path"`
	ConfigError   string          `json:"config_error,omitempty" doc:"Why the file as it is now was refused; the old configuration is live."`
	NeedsRestart  []string        `json:"needs_restart,omitempty" doc:"Changed settings that take effect at the next start."`
	Unconfirmed   int             `json:"unconfirmed,omitempty" doc:"Number of changes in the configuration file that grant more access and wait for confirmation: GET /config has them."`
	Warnings      []string        `json:"warnings,omitempty"`
	DataDir       string          `json:"data_dir"`
	Activity      activity.Health `json:"activity"`
	Definitions   Definitions     `json:"definitions"`
	Held          StatusHeld      `json:"held" doc:"Held calls."`
}

// StatusHeld counts the pending calls and the active leases.
type StatusHeld struct {
	Pending int `json:"pending" doc:"Calls that wait for approval now."`
	Leases  int `json:"leases" doc:"Leases that run: calls that are not asked about for a while."`
}

// Definitions is the size of the definitions that agents load.
type Definitions struct {
	LoadedBytes int `json:"loaded_bytes" doc:"Of the tools that an agent loads on /mcp now."`
	AllBytes    int `json:"all_bytes" doc:"Of all known tools, as their servers list them."`
}

// StatusServers counts the servers.
type StatusServers struct {
	Total   int `json:"total"`
	Enabled int `json:"enabled"`
	Ready   int `json:"ready"`
	Idle    int `json:"idle" doc:"Not running until they are used; their tools can be called."`

	NotReady []NotReady `json:"not_ready,omitempty" doc:"The enabled servers that are neither ready nor idle, and why."`
}

// NotReady is a server that cannot be used now.
type NotReady struct {
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Detail  string     `json:"detail" doc:"Its progress, or why it is not ready, for display."`
	Since   *time.Time `json:"since,omitempty" doc:"When it entered its state."`
	RetryAt *time.Time `json:"retry_at,omitempty"`
}

// StatusTools counts the tools.
type StatusTools struct {
	Total    int `json:"total"`
	Callable int `json:"callable"`
}

// Surface is an address that MCPProxy serves.
type Surface struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}
