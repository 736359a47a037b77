package gateway

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/activity"
)

// ServerView is a server as every surface shows it: the entries of
// upstream_servers, of GET /servers and of `upstream list`. Secrets are masked.
type ServerView struct {
	Name            string          `json:"name"`
	Protocol        string          `json:"protocol" doc:"How the server is reached: stdio, http or sse."`
	Enabled         bool            `json:"enabled"`
	Quarantined     bool            `json:"quarantined"`
	Stage           ReviewStage     `json:"stage,omitempty" doc:"How far the review of a quarantined server is."`
	Trust           string          `json:"trust,omitempty" doc:"Which definitions are accepted without a person: manual, scan or auto."`
	ProposedBy      string          `json:"proposed_by,omitempty" doc:"Who proposed a server that is not in the configuration yet."`
	State           string          `json:"state" doc:"stopped, connecting, ready, waiting (for the next try), idle (until it is used), or needs_login."`
	ToolCount       int             `json:"tool_count"`
	Lazy            bool            `json:"lazy,omitempty" doc:"Not started before its first call."`
	Session         string          `json:"session,omitempty" doc:"shared, when clients that speak to the server by itself use the session that MCPProxy has. Left out: each has its own."`
	Hint            string          `json:"hint,omitempty" doc:"How to have its tools listed, when it was never started."`
	NeedsLogin      bool            `json:"needs_login,omitempty" doc:"The server asks for a login, which only a person can make."`
	LastError       string          `json:"last_error,omitempty"`
	Tools           *Counts         `json:"tools,omitempty" doc:"Only when at least one tool cannot be called."`
	Command         string          `json:"command,omitempty"`
	Args            []string        `json:"args,omitempty"`
	URL             string          `json:"url,omitempty"`
	PID             int             `json:"pid,omitempty"`
	Restarts        int             `json:"restarts,omitempty"`
	Since           *time.Time      `json:"since,omitempty" doc:"When the server entered its state."`
	RetryAt         *time.Time      `json:"retry_at,omitempty"`
	ProtocolVersion string          `json:"protocol_version,omitempty"`
	ServerInfo      json.RawMessage `json:"server_info,omitempty"`
}

// Counts tells how many tools of a server can be called and why the others
// cannot. Reasons with no tool are left out.
type Counts struct {
	Callable          int `json:"callable"`
	ServerDisabled    int `json:"server_disabled,omitempty"`
	ServerQuarantined int `json:"server_quarantined,omitempty"`
	DisabledByConfig  int `json:"disabled_by_config,omitempty"`
	DisabledByUser    int `json:"disabled_by_user,omitempty"`
	PendingApproval   int `json:"pending_approval,omitempty"`
	DisabledUnknown   int `json:"disabled_unknown,omitempty"`
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
	CallWith            string          `json:"call_with"`
	InferredOperation   string          `json:"inferred_operation,omitempty" doc:"What a tool without hints seems to do. Absent when it says so itself, or infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"Why it seems so."`
	Status              string          `json:"status,omitempty" doc:"Why the tool cannot be called; absent when it can."`
	Trust               *Trust          `json:"trust,omitempty" doc:"What is decided about the tool. Absent in the answer of a search."`
	Score               float64         `json:"score,omitempty"`
	Why                 []Why           `json:"why,omitempty" doc:"Why a search found the tool, the weightiest reason first; only when asked for."`
}

// Why is one reason for which a search found a tool.
type Why struct {
	Asked  string   `json:"asked" doc:"What of the query: a word of it, or all when it is a name."`
	Found  []string `json:"found" doc:"The words of the tool that answer it."`
	How    string   `json:"how" doc:"same, stem (another form of the word), joined, synonym, misspelt, named, or used (the tool was called after searches with such words)."`
	Fields []string `json:"fields" doc:"Where they stand: name, server, title, summary (the first sentence of the description), description, parameter, parameter_text."`
	Share  float64  `json:"share,omitempty" doc:"Part of what the words add to the score; absent for a name, which comes before all words, and for use."`
}

// SearchQuery is what people search for. Empty fields are as configured.
type SearchQuery struct {
	Query     string
	Limit     int
	Operation string // read, write or destructive; empty = any
	Explain   bool   // say why each tool was found
}

// ToolFilter selects tools. Empty fields select everything.
type ToolFilter struct {
	Server   string
	CallWith string // a variant's name
	Status   string // "callable" or a status
}

// SearchAnswer is what a search found. Total counts the callable matches.
type SearchAnswer struct {
	Query string     `json:"query"`
	Total int        `json:"total"`
	Tools []ToolView `json:"tools"`
}

// Status is the answer to "what runs".
type Status struct {
	Version       string          `json:"version"`
	PID           int             `json:"pid"`
	StartedAt     time.Time       `json:"started_at"`
	UptimeSeconds int64           `json:"uptime_seconds"`
	Servers       StatusServers   `json:"servers"`
	Tools         StatusTools     `json:"tools"`
	Surfaces      []Surface       `json:"surfaces"`
	ConfigPath    string          `json:"config_path"`
	ConfigError   string          `json:"config_error,omitempty" doc:"Why the file as it is now was refused; the old configuration is live."`
	NeedsRestart  []string        `json:"needs_restart,omitempty" doc:"Changed settings that take effect at the next start."`
	Warnings      []string        `json:"warnings,omitempty"`
	DataDir       string          `json:"data_dir"`
	Activity      activity.Health `json:"activity"`
}

// StatusServers counts the servers.
type StatusServers struct {
	Total   int `json:"total"`
	Enabled int `json:"enabled"`
	Ready   int `json:"ready"`
	Idle    int `json:"idle" doc:"Not running until they are used; their tools can be called."`
}

// StatusTools counts the tools.
type StatusTools struct {
	Total    int `json:"total"`
	Callable int `json:"callable"`
}

// Surface is one address that MCPProxy answers on.
type Surface struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// RetrieveRequest asks for tools that fit a query, as an agent does.
type RetrieveRequest struct {
	Query           string
	Limit           int    // 0 = the configured one; clamped to 1–100
	Operation       string // "" = any, else read, write or destructive
	Detail          string // "" = the configured one, else full or compact
	IncludeDisabled bool
	Caller          Caller
}

// ReadRequest asks for a part of a large result.
type ReadRequest struct {
	Handle string
	Path   string
	Offset int
	Limit  int // 0 = result.DefaultBytes or DefaultElements
	Caller Caller
}
