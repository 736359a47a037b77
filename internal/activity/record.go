// Package activity is the log: every call, refusal, decision and change is a
// record in it.
//
// It guarantees that Begin and Append return only when the entry is in the
// spool (an append-only file of entries each chained to the one before by
// SHA-256), that no entry is dropped, that secrets are masked before anything
// is stored, and that a query sees everything appended before it. A projector
// moves entries in batches from the spool into the Store, and replays what a
// crash left. It does not decide anything, and SQL is the store's.
package activity

import (
	"encoding/json"
	"time"
)

// Type is the kind of a record.
type Type string

// The types.
const (
	ToolCall       Type = "tool_call"
	PolicyDecision Type = "policy_decision"
	Approval       Type = "approval"
	ServerChange   Type = "server_change"
	ConfigChange   Type = "config_change"
	System         Type = "system"
)

// Status is how the thing went.
type Status string

// The statuses.
const (
	Success     Status = "success"
	Failed      Status = "error"
	Blocked     Status = "blocked"
	Pending     Status = "pending"
	Interrupted Status = "interrupted"
)

// Source is the surface a call came in by.
type Source string

// The sources.
const (
	SourceMCP  Source = "mcp"
	SourceREST Source = "rest"
	SourceCLI  Source = "cli"
	SourceUI   Source = "ui"
)

// Record is one entry of the log, as stored and as REST and the CLI show it.
// ID is a ULID in time order, given by the Log. Arguments and Response are JSON,
// masked; Response is the upstream's result. Of each at most
// activity_max_response_size bytes are kept: what is longer is a JSON string of
// its beginning, with ArgumentsTruncated or ResponseTruncated set. Names and
// messages are cut to what the package's limits allow.
type Record struct {
	ID         string          `json:"id"`
	Type       Type            `json:"type"`
	Status     Status          `json:"status"`
	ServerName string          `json:"server_name,omitempty"`
	ToolName   string          `json:"tool_name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	// ArgumentsTruncated says that Arguments is the beginning only.
	ArgumentsTruncated bool            `json:"arguments_truncated,omitempty"`
	Response           json.RawMessage `json:"response,omitempty"`
	ResponseTruncated  bool            `json:"response_truncated,omitempty"`
	ErrorMessage       string          `json:"error_message,omitempty"`
	Timestamp          time.Time       `json:"timestamp"`
	DurationMS         int64           `json:"duration_ms"`
	RequestBytes       int64           `json:"request_bytes"`
	ResponseBytes      int64           `json:"response_bytes"`
	SessionID          string          `json:"session_id,omitempty"`
	RequestID          string          `json:"request_id,omitempty"`
	ParentID           string          `json:"parent_id,omitempty"`
	Source             Source          `json:"source,omitempty"`
	Actor              string          `json:"actor,omitempty"`
	ClientName         string          `json:"client_name,omitempty"`
	ClientVersion      string          `json:"client_version,omitempty"`
	Metadata           Metadata        `json:"metadata"`
}

// Metadata is the part of a record that only some types have.
type Metadata struct {
	Intent      *Intent  `json:"intent,omitempty"`
	ToolVariant string   `json:"tool_variant,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	ErrorCode   string   `json:"error_code,omitempty"`
	// Search is the search that the caller made before the call, if any.
	Search *Search `json:"search,omitempty"`
	// Action and Detail describe the other types: "restart", "tools_listed", …
	Action string `json:"action,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Intent is the declared intent as the record keeps it.
type Intent struct {
	OperationType   string `json:"operation_type"`
	DataSensitivity string `json:"data_sensitivity,omitempty"`
	Reason          string `json:"reason,omitempty"`
}

// Search is how a called tool was found: the words of the last search of the
// same conversation whose answer had the tool, and the tool's place in it. Rank
// is 0 when no recent answer had it.
type Search struct {
	Query string `json:"query"`
	Rank  int    `json:"rank,omitempty"`
}

// Outcome ends a record that Begin wrote.
type Outcome struct {
	Status        Status
	Response      json.RawMessage // unmasked, whole; the Log masks and cuts
	ResponseBytes int64
	ErrorMessage  string
	ErrorCode     string
	Duration      time.Duration
	Warnings      []string // added to those of Begin
}

// Filter selects records. Empty fields select everything. Several values of one
// field mean any of them.
type Filter struct {
	Types         []Type
	Statuses      []Status
	Servers       []string
	Tools         []string
	SessionID     string
	RequestID     string
	IntentTypes   []string
	Sensitivities []string
	Actors        []string
	Since, Until  time.Time // [Since, Until)
	Search        string    // full text over arguments, responses and reasons
	Limit         int       // 1 to 1000; 0 = 50
	Offset        int
	Cursor        string // from Page.NextCursor; excludes Offset
}

// Page is the answer to a Filter, newest first.
type Page struct {
	Records    []Record
	Total      int64  // all that the filter selects
	NextCursor string // empty on the last page
}
