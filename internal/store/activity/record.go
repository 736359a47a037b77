// Package activity is the log: every call, refusal, decision and change is a
// record in it.
//
// It guarantees that Begin, Append and End return only when the entry is in the
// spool (an append-only file of entries each chained to the one before by
// SHA-256), where it outlives the process, and with activity_durability: power a
// loss of power; that no entry is dropped, that secrets are masked before anything
// is stored, and that a query sees everything appended before it. Of identical
// refusals the first is an entry at once and the others are a count, and what one
// actor can write by being refused is bounded (refusals.go). A projector
// moves entries in batches from the spool into the Store, and replays what a
// crash left. It does not decide anything, and SQL is the store's.
//
// Where things are: spool.go and spool_write.go append, segment.go is one file of the
// spool, reader.go and recover.go read it (again), recent.go keeps the end of it a
// second time, in a file in memory that outlives the process, where there is one; projector.go brings entries to the Store; response.go cuts
// and masks what is kept of a response.
package activity

import (
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/internal/config/auth"
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
	Presence       Type = "presence" // the anchor that verifies what persons decide
)

// Words are all types.
func (Type) Words() []string {
	return []string{string(ToolCall), string(PolicyDecision), string(Approval), string(ServerChange), string(ConfigChange), string(System), string(Presence)}
}

// Status is how the thing went.
type Status string

// The statuses.
const (
	Success     Status = "success"
	Failed      Status = "error"
	Blocked     Status = "blocked"
	Pending     Status = "pending"
	Interrupted Status = "interrupted"
	Held        Status = "held" // it waits for a person; that it is made is a record of its own
)

// Words are all statuses.
func (Status) Words() []string {
	return []string{string(Success), string(Failed), string(Blocked), string(Pending), string(Interrupted), string(Held)}
}

// Source is the surface a call came in by.
type Source = auth.Source

// The sources.
const (
	SourceMCP  = auth.MCP
	SourceREST = auth.REST
	SourceCLI  = auth.CLI
	SourceUI   = auth.UI
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
	// ArgumentsTruncated reports whether Arguments is the beginning only.
	ArgumentsTruncated bool            `json:"arguments_truncated,omitempty"`
	Response           json.RawMessage `json:"response,omitempty"`
	ResponseTruncated  bool            `json:"response_truncated,omitempty"`
	ErrorMessage       string          `json:"error_message,omitempty"`
	Timestamp          time.Time       `json:"timestamp"`
	DurationMS         int64           `json:"duration_ms"`
	OwnUS              int64           `json:"own_us,omitempty" doc:"What MCPProxy itself took of the duration, in microseconds: all but the time in which a place and the server were waited for. Absent where it is not known."`
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
	// Repeated is how many identical refusals the record stands for, when it is
	// more than one; FirstTime (which is Timestamp) and LastTime are then when the
	// first and the last of them were.
	Repeated  int64      `json:"repeated,omitempty"`
	FirstTime *time.Time `json:"first_time,omitempty"`
	LastTime  *time.Time `json:"last_time,omitempty"`
	// Erased is what the record had, and a person has erased.
	Erased []Erased `json:"erased,omitempty" doc:"Fields that the record had and a person has erased."`
	// Chain is where the record is in the log: of a record that was asked for alone.
	Chain *Chain `json:"chain,omitempty"`
	// Origin is the connection that a call came by. It is not stored: what one
	// connection can write by being refused is bounded.
	Origin string `json:"-"`
}

// HasErased reports whether the record had a field that was erased.
func (r *Record) HasErased(f ErasableField) bool {
	return slices.ContainsFunc(r.Erased, func(e Erased) bool { return e.Field == f })
}

// SetCaller puts into the record who asks and from where.
func (r *Record) SetCaller(c *auth.Caller) {
	r.Source, r.Actor, r.Origin = c.Source, c.Actor.String(), c.Origin
	r.SessionID, r.RequestID = c.SessionID, c.RequestID
	r.ClientName, r.ClientVersion = c.ClientName, c.ClientVersion
}

// Metadata is the part of a record that only some types have.
type Metadata struct {
	Intent      *Intent  `json:"intent,omitempty" doc:"The operation type of the lane that was used, and what the caller declared. Every call that named a lane has it; on /mcp/all and /mcp/servers the lane is the one that the tool's hints call for. Absent in records that are no calls, and in those of calls that were refused before a lane was known: an unreadable request, an unknown or missing calling tool, wrong credentials."`
	ToolVariant string   `json:"tool_variant,omitempty" words:"variant" doc:"The lane, as the calling tool that is named after it. Absent where a call was refused before it was decided about, though intent may be there."`
	Warnings    []string `json:"warnings,omitempty"`
	ErrorCode   string   `json:"error_code,omitempty"`
	// Decision is what was decided about a call.
	Decision *Decision `json:"decision,omitempty"`
	// Search is the search that the caller made before the call, if any.
	Search *Search `json:"search,omitempty"`
	// Action and Detail describe the other types: "restart", "tools_listed", …
	Action string `json:"action,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Redacted is what the record says was erased.
	Redacted *Redacted `json:"redacted,omitempty" doc:"Which fields of which record were erased."`
}

// Redacted names fields of a record that were erased.
type Redacted struct {
	ID     string          `json:"id" doc:"The record that had them."`
	Fields []ErasableField `json:"fields"`
}

// Intent is the declared intent as the record keeps it.
type Intent struct {
	OperationType   string `json:"operation_type" words:"operation"`
	DataSensitivity string `json:"data_sensitivity,omitempty" words:"sensitivity"`
	Reason          string `json:"reason,omitempty"`
	// Declared is what the caller declared, to the letter: the parameters that
	// declare, masked. Only where it was refused, or would have been.
	Declared json.RawMessage `json:"declared,omitempty" doc:"What was declared, to the letter, where that is not what counted."`
}

// Search is how a called tool was found: the words of the last search of the
// same session whose answer had the tool, and the tool's place in it. Rank
// is 0 when no recent answer had it.
type Search struct {
	Query string `json:"query"`
	Rank  int    `json:"rank,omitempty"`
}

// EachChainPart is the place of a record in the log, in which each entry holds the hash of the
// one before: the entry that began the record, and the one that ended it. Hashes are
// in hexadecimal digits.
type Chain struct {
	Seq      int64  `json:"seq" doc:"The number of the entry that began the record."`
	Hash     string `json:"hash" doc:"The hash of that entry; empty when it is lost."`
	Previous string `json:"previous" doc:"The hash of the entry before, with which hash is made; empty when that is not there any more."`
	EndSeq   int64  `json:"end_seq,omitempty" doc:"The number of the entry that ended the record, or counted a refusal last."`
	EndHash  string `json:"end_hash,omitempty"`
}

// Outcome ends a record that Begin wrote.
type Outcome struct {
	Status        Status
	Response      json.RawMessage // unmasked, whole; the Log masks and cuts
	ResponseBytes int64
	ErrorMessage  string
	ErrorCode     string
	Duration      time.Duration
	Own           time.Duration // of Duration, that was no waiting; 0: not known
	Check         string        // that refused the call after all, when it had waited
	Warnings      []string      // added to those of Begin
}

// Filter selects records. Empty fields select everything. Several values of one
// field mean any of them. The tags are for package api.
type Filter struct {
	Types         []Type    `query:"type" split:"," doc:"Only records of these types."`
	Servers       []string  `query:"server" split:"," doc:"Only records of these servers."`
	Tools         []string  `query:"tool" doc:"Only records of these tools, by the tool's own name; repeat it for several. One alone, without server, may be server:tool."`
	Statuses      []Status  `query:"status" split:"," doc:"Only records with these statuses."`
	SessionID     string    `query:"session_id" doc:"Only records of this session."`
	RequestID     string    `query:"request_id" doc:"Only records of this request."`
	IntentTypes   []string  `query:"intent_type" split:"," words:"operation" doc:"Only calls with these operation types."`
	Sensitivities []string  `query:"sensitivity" split:"," words:"sensitivity" doc:"Only calls with these declared sensitivities."`
	Actors        []string  `query:"actor" doc:"Only records of these actors: admin, agent, or agent:NAME; repeat it for several."`
	Clients       []string  `query:"client" doc:"Only records of these clients, by the name that they give; repeat it for several."`
	Since         time.Time `query:"start_time" doc:"Only records from this time on."`
	Until         time.Time `query:"end_time" doc:"Only records before this time."`
	Search        string    `query:"q" doc:"Words in arguments, responses and reasons."`
	Limit         int       `query:"limit" min:"1" max:"1000" default:"50" doc:"How many records at most."`
	Offset        int       `query:"offset" min:"0" max:"2147483648" doc:"How many records to leave out. A cursor is faster and misses nothing."`
	Cursor        string    `query:"cursor" doc:"The next_cursor of the page before; not together with offset."`
}

// RecordPage is the answer to a Filter, newest first.
type RecordPage struct {
	Records    []Record
	Total      int64  // all that the filter selects
	NextCursor string // empty on the last page
	// Incomplete reports whether the newest records are not in it: the database cannot
	// take them at this time.
	Incomplete bool
}

// ErasableField is a value of a record that can be erased.
type ErasableField string

// The fields.
const (
	FieldArguments ErasableField = "arguments"
	FieldResponse  ErasableField = "response"
	FieldError     ErasableField = "error_message"
	FieldReason    ErasableField = "reason"   // of the intent
	FieldDeclared  ErasableField = "declared" // in the intent
	FieldQuery     ErasableField = "query"    // of the search
	FieldWarnings  ErasableField = "warnings"
)

// erasableFields are all that there are, in the order in which they stand.
var erasableFields = [...]ErasableField{FieldArguments, FieldResponse, FieldError, FieldReason, FieldDeclared, FieldQuery, FieldWarnings}

// Words are all fields.
func (ErasableField) Words() []string {
	var words []string
	for _, f := range erasableFields {
		words = append(words, string(f))
	}
	return words
}

// FinishErasures is a field that a record had.
type Erased struct {
	Field ErasableField `json:"field"`
	At    time.Time     `json:"at"`
}
