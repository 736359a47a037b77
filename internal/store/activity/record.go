// Package activity is the activity log: every call, refusal, decision and change is a record in it. A record is written
// as one or two entries to the spool. The spool consists of append-only files in which each entry contains the hash of
// the previous entry. A projector moves entries from the spool into the Store, the database that answers queries.
//
// Main files:
//   - log.go: opens and closes the log; begins, appends and ends records
//   - query.go: lists, counts, exports and verifies records through the Store
//   - record.go, decision.go, summary.go: the types of records, filters and counts
//   - mask_record.go, mask_result.go: mask the secrets of a record and of a stored result, and cut them, before they
//     are written
//   - recorder.go: the recordWriter, which masks records and writes them into the spool
//   - codec.go, payload.go, encode.go, decode.go, erasable.go: the JSON of an entry, with its erasable fields and their
//     commitments; a member is written by hand and read with encoding/json
//   - entry.go, chain.go: an entry, its facts and its hash
//   - spool.go, spool_write.go, queue.go: append entries, and keep the newest in memory
//   - spooldir.go, segment.go, spoolfile.go, mapped_linux.go: the directory, segments and open files of the spool
//   - recover.go: opens the spool after a crash, and cuts off or restores its end
//   - recentcopy.go: a second copy of the newest entries in shared memory, for when the disk of the spool fails
//   - watcher.go: checks the spool once a second and repairs it
//   - projector.go, progress.go, spoolreader.go: move entries into the Store, also after a restart
//   - outcomes.go: writes the outcomes of records, and retries those that could not be written
//   - refusals.go: counts identical refusals in one record, and limits the records of one actor's refusals
//   - eventreader.go: lets a caller follow the log from a position
//   - redact.go, erase.go: erase fields of a record permanently
//   - verify.go, signingkey.go, exportaudit.go, export.go: verify the chain, sign checkpoints, export entries and check
//     an export
//   - store.go: the interface of the database
//
// Guarantees:
//   - When Begin, Append or End returns without an error, the entry is in the spool, where it survives the process.
//     With activity_durability "power", it also survives a loss of power.
//   - No entry is dropped. The projector processes the entries that a crash left behind.
//   - Secrets are masked before anything is stored.
//   - A query includes everything that was appended before it.
//
// Limits: the package makes no decision about calls, and SQL is in package store.
package activity

import (
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/internal/config/auth"
)

// Type is the kind of a record.
type Type string

const (
	ToolCall       Type = "tool_call"
	PolicyDecision Type = "policy_decision"
	Approval       Type = "approval"
	ServerChange   Type = "server_change"
	ConfigChange   Type = "config_change"
	System         Type = "system"
	Presence       Type = "presence" // a change of the trust anchor that verifies the decisions of users
)

// Words returns all types.
func (Type) Words() []string {
	return []string{string(ToolCall), string(PolicyDecision), string(Approval), string(ServerChange), string(ConfigChange), string(System), string(Presence)}
}

// Status is the result of the recorded action.
type Status string

const (
	Success     Status = "success"
	Failed      Status = "error"
	Blocked     Status = "blocked"
	Pending     Status = "pending"
	Interrupted Status = "interrupted"
	Held        Status = "held" // waits for an approval; the approved call has a separate record
)

// Words returns all statuses.
func (Status) Words() []string {
	return []string{string(Success), string(Failed), string(Blocked), string(Pending), string(Interrupted), string(Held)}
}

// Source is the interface through which a call arrived.
type Source = auth.RequestSource

const (
	SourceMCP  = auth.MCP
	SourceREST = auth.REST
	SourceCLI  = auth.CLI
	SourceUI   = auth.UI
)

// Record is one record of the log, as it is stored and as REST and the CLI show it. ID is a ULID in time order that the
// Log assigns. Arguments and Response are masked JSON. Response is the result of the server. If one of them is longer
// than activity_max_response_size bytes, the record contains a JSON string with its beginning, and ArgumentsTruncated
// or ResponseTruncated is set. Names and messages are cut to the limits in this package.
type Record struct {
	ID         string          `json:"id"`
	Type       Type            `json:"type"`
	Status     Status          `json:"status"`
	ServerName string          `json:"server_name,omitempty"`
	ToolName   string          `json:"tool_name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	// ArgumentsTruncated reports whether Arguments contains only the beginning.
	ArgumentsTruncated bool            `json:"arguments_truncated,omitempty"`
	Response           json.RawMessage `json:"response,omitempty"`
	ResponseTruncated  bool            `json:"response_truncated,omitempty"`
	ErrorMessage       string          `json:"error_message,omitempty"`
	Timestamp          time.Time       `json:"timestamp"`
	DurationMS         int64           `json:"duration_ms"`
	OwnUS              int64           `json:"own_us,omitempty" doc:"The time that MCPProxy itself needed, in microseconds: the duration without the waits for a slot and for the server. Absent if unknown."`
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
	// Repeated is the number of identical refusals that the record counts, if more than one. In that case, FirstTime
	// (equal to Timestamp) and LastTime are the times of the first and the last refusal.
	Repeated  int64      `json:"repeated,omitempty"`
	FirstTime *time.Time `json:"first_time,omitempty"`
	LastTime  *time.Time `json:"last_time,omitempty"`
	// Erased lists the fields that a user erased.
	Erased []Erased `json:"erased,omitempty" doc:"The fields that a user erased. Absent if there are none."`
	// Chain is the record's position in the chain. It is set only by functions that read a single record.
	Chain *Chain `json:"chain,omitempty"`
	// Origin identifies the connection of the call. It is not stored. It is used to limit the number of records about
	// refusals of one connection.
	Origin string `json:"-"`
}

// HasErased reports whether a field of the record was erased.
func (r *Record) HasErased(f ErasableField) bool {
	return slices.ContainsFunc(r.Erased, func(e Erased) bool { return e.Field == f })
}

// SetCaller sets the fields that describe the caller and its origin.
func (r *Record) SetCaller(c *auth.Caller) {
	r.Source, r.Actor, r.Origin = c.Source, c.Actor.String(), c.Origin
	r.SessionID, r.RequestID = c.SessionID, c.RequestID
	r.ClientName, r.ClientVersion = c.ClientName, c.ClientVersion
}

// Metadata contains the values that only some types of records have.
type Metadata struct {
	Intent      *Intent  `json:"intent,omitempty" doc:"The operation type of the call's lane, and the declared intent. On /mcp/all and /mcp/servers the hints of the tool decide the lane. Absent in records that are not calls, and if the call was rejected before its lane was known: an unreadable request, an unknown or missing calling tool, or wrong credentials."`
	ToolVariant string   `json:"tool_variant,omitempty" words:"variant" doc:"The calling tool of the call's lane. Absent if the call was rejected before the policy was evaluated, even if intent is set."`
	Warnings    []string `json:"warnings,omitempty"`
	ErrorCode   string   `json:"error_code,omitempty"`
	// Decision is the decision about a call.
	Decision *Decision `json:"decision,omitempty"`
	// Search is the search that the caller made before the call, if any.
	Search *Search `json:"search,omitempty"`
	// Action and Detail describe records of other types: "restart", "tools_listed", …
	Action string `json:"action,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Redacted describes which fields of another record this record erased.
	Redacted *Redacted `json:"redacted,omitempty" doc:"The fields of another record that this action erased. Absent in records of other actions."`
}

// Redacted lists fields of a record that were erased.
type Redacted struct {
	ID     string          `json:"id" doc:"The id of the record whose fields were erased."`
	Fields []ErasableField `json:"fields"`
}

// Intent is the declared intent of a call.
type Intent struct {
	OperationType   string `json:"operation_type" words:"operation"`
	DataSensitivity string `json:"data_sensitivity,omitempty" words:"sensitivity"`
	Reason          string `json:"reason,omitempty"`
	// Declared is the exact declaration of the caller, masked. It is set only if the declaration was refused or would
	// have been refused.
	Declared json.RawMessage `json:"declared,omitempty" doc:"The exact declaration of the caller. Absent if it is equal to the effective intent."`
}

// Search describes how the caller found a tool. It contains the query of the last search in the same session that
// returned the tool, and the tool's rank in the result. Rank is 0 if no recent result contained the tool.
type Search struct {
	Query string `json:"query"`
	Rank  int    `json:"rank,omitempty"`
}

// Chain is the position of a record in the chain: the entry that began the record, and the entry that ended it. Hashes
// are in hexadecimal.
type Chain struct {
	Seq      int64  `json:"seq" doc:"The number of the first entry of the record in the hash chain."`
	Hash     string `json:"hash" doc:"The hash of that entry, in hexadecimal. Empty if it is lost."`
	Previous string `json:"previous" doc:"The hash of the previous entry, on which hash depends. Empty if that entry no longer exists."`
	EndSeq   int64  `json:"end_seq,omitempty" doc:"The number of the last entry of the record: the end of the call, or the last repetition of a rejected call. Absent if there is none."`
	EndHash  string `json:"end_hash,omitempty"`
}

// Outcome is the outcome of a record that Begin wrote.
type Outcome struct {
	Status        Status
	Response      json.RawMessage // complete and unmasked; the Log masks and cuts it
	ResponseBytes int64
	ErrorMessage  string
	ErrorCode     string
	Duration      time.Duration
	Own           time.Duration // part of Duration without waiting; 0 if unknown
	Check         string        // the check that refused the call after it had waited
	Warnings      []string      // added to the warnings of Begin
}

// Filter selects records. Empty fields select all records. A field with several values selects records that have any of
// them. The struct tags are for package api.
type Filter struct {
	Types         []Type    `query:"type" split:"," doc:"Only records of these types."`
	Servers       []string  `query:"server" split:"," doc:"Only records of these servers."`
	Tools         []string  `query:"tool" doc:"Only records of these tools, by the tool's own name. Repeat the parameter for several tools. A single tool without the parameter server may be server:tool."`
	Statuses      []Status  `query:"status" split:"," doc:"Only records with these statuses."`
	SessionID     string    `query:"session_id" doc:"Only records of this session."`
	RequestID     string    `query:"request_id" doc:"Only records of this request."`
	IntentTypes   []string  `query:"intent_type" split:"," words:"operation" doc:"Only calls with these operation types."`
	Sensitivities []string  `query:"sensitivity" split:"," words:"sensitivity" doc:"Only calls with these declared sensitivities."`
	Actors        []string  `query:"actor" doc:"Only records of these actors: admin, agent, agent:NAME, or user:NAME. Repeat the parameter for several actors."`
	Users         []string  `query:"user" doc:"Only records of these users, by the name that follows user: in actor. Repeat the parameter for several users."`
	Clients       []string  `query:"client" doc:"Only records of these clients, by their self-reported name. Repeat the parameter for several clients."`
	Since         time.Time `query:"start_time" doc:"Only records at or after this time."`
	Until         time.Time `query:"end_time" doc:"Only records before this time."`
	Search        string    `query:"q" doc:"Only records with these words in their arguments, response or reason."`
	Limit         int       `query:"limit" min:"1" max:"1000" default:"50" doc:"The maximum number of records."`
	Offset        int       `query:"offset" min:"0" max:"2147483648" doc:"The number of records to skip. A cursor is faster, and does not miss records when new ones arrive."`
	Cursor        string    `query:"cursor" doc:"The next_cursor of the previous page. It cannot be combined with offset."`
}

// NormalizeUsers replaces Users by their actors.
func (f *Filter) NormalizeUsers() {
	for _, u := range f.Users {
		f.Actors = append(f.Actors, auth.UserPrefix+u)
	}
	f.Users = nil
}

// RecordPage is a page of the records that a Filter selects, newest first.
type RecordPage struct {
	Records    []Record
	Total      int64  // number of records that the filter selects
	NextCursor string // empty on the last page
	// Incomplete reports whether the newest records are missing, because the database cannot store them now.
	Incomplete bool
}

// ErasableField is the name of a field of a record that can be erased.
type ErasableField string

const (
	FieldArguments ErasableField = "arguments"
	FieldResponse  ErasableField = "response"
	FieldError     ErasableField = "error_message"
	FieldReason    ErasableField = "reason"   // of the intent
	FieldDeclared  ErasableField = "declared" // in the intent
	FieldQuery     ErasableField = "query"    // of the search
	FieldWarnings  ErasableField = "warnings"
)

// erasableFields lists all erasable fields, in the order in which they are written.
var erasableFields = [...]ErasableField{FieldArguments, FieldResponse, FieldError, FieldReason, FieldDeclared, FieldQuery, FieldWarnings}

// Words returns all fields.
func (ErasableField) Words() []string {
	var words []string
	for _, f := range erasableFields {
		words = append(words, string(f))
	}
	return words
}

// Erased states when a field of a record was erased.
type Erased struct {
	Field ErasableField `json:"field"`
	At    time.Time     `json:"at"`
}
