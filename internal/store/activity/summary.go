package activity

import (
	"time"

	"mcpproxy/internal/problem"
)

// SummaryQuery selects the records for a Summary. It ignores the paging fields of the Filter. Since and Until are
// required.
type SummaryQuery struct {
	Filter
	Step  time.Duration // duration of a bucket, in whole seconds
	Group GroupBy       // empty for no groups
	Most  int64         // maximum number of records to examine, newest first
	// Times contains the current counts of repeated refusals by record ID, because the store may have older counts.
	Times map[string]int64
}

// GroupBy is the property by which calls are grouped.
type GroupBy string

const (
	ByLane   GroupBy = "lane"
	ByServer GroupBy = "server"
	ByTool   GroupBy = "tool"
	ByClient GroupBy = "client"
)

// Words returns all properties.
func (GroupBy) Words() []string {
	return []string{string(ByLane), string(ByServer), string(ByTool), string(ByClient)}
}

// MaxGroups is the maximum number of groups in a Summary.
const MaxGroups = 100

// Summary is the result of counting calls. Percentiles cover calls that have ended. They are exact below 256 and within
// 0.4 % above. They are 0 if there are no such calls.
type Summary struct {
	Cut          bool     `json:"cut,omitempty" doc:"Whether older records of the period were left out."`
	Incomplete   bool     `json:"incomplete,omitempty" doc:"Whether the newest records are missing because MCPProxy cannot write to the database now. GET /status has details."`
	Records      int64    `json:"records" doc:"The number of records of all types that match the filters."`
	Calls        int64    `json:"calls" doc:"The number of calls, without held calls."`
	Refused      int64    `json:"refused" doc:"The number of rejected calls. Each repetition counts."`
	Failed       int64    `json:"failed" doc:"The number of calls that failed or were interrupted."`
	FailedTool   int64    `json:"failed_tool" doc:"The number of failed calls for which the tool reported an error in its result."`
	FailedServer int64    `json:"failed_server" doc:"The number of failed calls for which the server was unreachable, or sent no valid response in time."`
	P50          int64    `json:"p50_ms" doc:"The median (p50) of the duration in milliseconds."`
	P95          int64    `json:"p95_ms" doc:"The 95th percentile (p95) of the duration in milliseconds."`
	OwnP50       int64    `json:"own_p50_us" doc:"The median (p50) of MCPProxy's own time per call, in microseconds: own_us of the records."`
	OwnP95       int64    `json:"own_p95_us"`
	Buckets      []Bucket `json:"buckets" doc:"The counts by time: buckets of equal length, oldest first, including empty ones."`
	Groups       []Tally  `json:"groups" doc:"The counts by the field in the parameter group, most calls first, at most 100."`
}

// Bucket contains the counts of one step of a Summary, which begins at Start.
type Bucket struct {
	Start       time.Time `json:"start"`
	Read        int64     `json:"read"`
	Write       int64     `json:"write"`
	Destructive int64     `json:"destructive"`
	Refused     int64     `json:"refused"`
	Failed      int64     `json:"failed"`
}

// Tally contains the counts of one lane, server, tool (server:tool) or client.
type Tally struct {
	Key     string    `json:"key" doc:"The value of the field by which calls are grouped; for a tool server:tool. Empty if the record has no value."`
	Calls   int64     `json:"calls"`
	Refused int64     `json:"refused"`
	Failed  int64     `json:"failed"`
	P50     int64     `json:"p50_ms"`
	P95     int64     `json:"p95_ms"`
	OwnP50  int64     `json:"own_p50_us"`
	Last    time.Time `json:"last" doc:"The time of the last call, including rejected calls."`
}

// ServerFailureCodes returns the error codes of calls that failed because the server was unreachable or did not return
// a valid response in time. A failure that the tool itself reports has no code.
func ServerFailureCodes() []problem.Code {
	return []problem.Code{problem.ServerUnavailable, problem.Timeout, problem.UpstreamError, problem.LoginNeeded}
}

// SessionQuery selects sessions that have records in the period from Since to before Until.
type SessionQuery struct {
	Since, Until  time.Time
	Limit, Offset int
	Most          int64            // maximum number of records to examine, newest first
	Times         map[string]int64 // see SummaryQuery
}

// SessionPage is a page of sessions. The session with the newest record is the first.
type SessionPage struct {
	Sessions   []Session
	Total      int64
	Cut        bool // whether older records were not examined
	Incomplete bool // whether the newest records are missing: see RecordPage
}

// Session summarizes the records of a session in the requested period.
type Session struct {
	ID            string    `json:"id"`
	ClientName    string    `json:"client_name,omitempty"`
	ClientVersion string    `json:"client_version,omitempty"`
	Actor         string    `json:"actor,omitempty"`
	Source        Source    `json:"source,omitempty"`
	First         time.Time `json:"first" doc:"The time of the session's first record in the period."`
	Last          time.Time `json:"last"`
	Calls         int64     `json:"calls"`
	Refused       int64     `json:"refused"`
	Failed        int64     `json:"failed"`
}
