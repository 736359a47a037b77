package api

import (
	"net/url"

	"mcpproxy/internal/ops"
)

// The operations on the log as a whole. Their paths take precedence over /activity/{id}.
var (
	GetSummary     = declareOperation("GET /activity/summary", "getActivitySummary", Look, "Summarize calls by time, and by lane, server, tool or client", (*ops.ActivityHistory).Summary).omitParams("limit", "offset", "cursor").withValidation(checkSummaryQuery)
	ExportActivity = declareOperation("GET /activity/export", "exportActivity", Look, "Export the log as a file, newest first: the records at the start of the export", (*ops.ActivityHistory).Export).omitParams("limit", "offset", "cursor").withContentType("application/x-ndjson").withValidation(checkExportQuery)
	VerifyActivity = declareOperation("GET /activity/verify", "verifyActivity", Look, "Whether the log is as it was written: the whole of it is read", (*ops.ActivityHistory).VerifyLog).withTimeout(0)
	RedactActivity = declareOperation("POST /activity/{id}/redact", "redactActivity", Decide, "Erases fields of a record for good; that it was done is on record", (*ops.ActivityHistory).EraseRecordFields).withTimeout(0)
	ListSessions   = declareOperation("GET /sessions", "listSessions", Look, "The sessions of clients, by the log, the newest first", (*ops.ActivityHistory).Sessions)
)

func checkSummaryQuery(in *ops.SummaryQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}

func checkExportQuery(in *ops.ExportQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}
