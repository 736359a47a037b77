package activity

import (
	"time"

	"mcpproxy/internal/problem"
)

// SummaryQuery selects the records of a Summary: those of the Filter, without its page. Since and Until are required.
type SummaryQuery struct {
	Filter
	Step  time.Duration // of a bucket; whole seconds
	Group GroupBy       // empty for no groups
	Most  int64         // maximum number of records that are examined, newest first
	// Times has the current counts of repeated refusals by record ID, if the store may have older counts.
	Times map[string]int64
}

// GroupBy is the property that calls are grouped by.
type GroupBy string

const (
	ByLane   GroupBy = "lane"
	ByServer GroupBy = "server"
	ByTool   GroupBy = "tool"
	ByClient GroupBy = "client"
)

// Words returns all groups.
func (GroupBy) Words() []string {
	return []string{string(ByLane), string(ByServer), string(ByTool), string(ByClient)}
}

// MaxGroups is the maximum number of groups in a Summary.
const MaxGroups = 100

// Summary is the result of counting calls. Percentiles cover calls that have ended. They are exact below
// 256 and within 0.4 % above; 0 if there is none.
type Summary struct {
	Cut          bool     `json:"cut,omitempty" doc:"There are older records that are not included."`
	Incomplete   bool     `json:"incomplete,omitempty" doc:"The newest records are missing: the database cannot take them at this time, see status."`
	Records      int64    `json:"records" doc:"Records that the filters select, of all types."`
	Calls        int64    `json:"calls" doc:"Calls, without held calls."`
	Refused      int64    `json:"refused" doc:"Calls that were refused, each time that it was."`
	Failed       int64    `json:"failed" doc:"Calls that failed or were interrupted."`
	FailedTool   int64    `json:"failed_tool" doc:"Those of them of which the tool itself said that it failed."`
	FailedServer int64    `json:"failed_server" doc:"Those of them of which the server could not be reached, or gave no sound answer in time."`
	P50          int64    `json:"p50_ms" doc:"Half of the calls took no longer."`
	P95          int64    `json:"p95_ms" doc:"19 of 20 calls took no longer."`
	OwnP50       int64    `json:"own_p50_us" doc:"MCPProxy's part of it."`
	OwnP95       int64    `json:"own_p95_us"`
	Buckets      []Bucket `json:"buckets" doc:"The time in equal parts, the oldest first; those without anything, too."`
	Groups       []Tally  `json:"groups" doc:"By what group says, the most called first; at most 100."`
}

// Bucket counts the calls of one step of a Summary, from Start.
type Bucket struct {
	Start       time.Time `json:"start"`
	Read        int64     `json:"read"`
	Write       int64     `json:"write"`
	Destructive int64     `json:"destructive"`
	Refused     int64     `json:"refused"`
	Failed      int64     `json:"failed"`
}

// Tally counts the calls of one lane, server, tool (server:tool) or client.
type Tally struct {
	Key     string    `json:"key" doc:"A tool is server:tool; empty where the record does not say."`
	Calls   int64     `json:"calls"`
	Refused int64     `json:"refused"`
	Failed  int64     `json:"failed"`
	P50     int64     `json:"p50_ms"`
	P95     int64     `json:"p95_ms"`
	OwnP50  int64     `json:"own_p50_us"`
	Last    time.Time `json:"last" doc:"The last call, or refusal."`
}

// ServerFailureCodes returns the codes of calls that failed because the server was unreachable or gave no
// valid answer in time. A failure that the tool itself reports has no code.
func ServerFailureCodes() []problem.Code {
	return []problem.Code{problem.ServerUnavailable, problem.Timeout, problem.UpstreamError, problem.LoginNeeded}
}

// SessionQuery selects sessions that have records from Since and before Until.
type SessionQuery struct {
	Since, Until  time.Time
	Limit, Offset int
	Most          int64            // maximum number of records that are examined, newest first
	Times         map[string]int64 // see SummaryQuery
}

// SessionPage is a page of sessions, the one with the newest record first.
type SessionPage struct {
	Sessions   []Session
	Total      int64
	Cut        bool // older records were not examined
	Incomplete bool // the newest records are missing: see RecordPage
}

// Session summarizes the records of one session in the requested period.
type Session struct {
	ID            string    `json:"id"`
	ClientName    string    `json:"client_name,omitempty"`
	ClientVersion string    `json:"client_version,omitempty"`
	Actor         string    `json:"actor,omitempty"`
	Source        Source    `json:"source,omitempty"`
	First         time.Time `json:"first" doc:"The time of its first record in the period."`
	Last          time.Time `json:"last"`
	Calls         int64     `json:"calls"`
	Refused       int64     `json:"refused"`
	Failed        int64     `json:"failed"`
}
