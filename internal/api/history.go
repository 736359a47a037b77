package api

import (
	"net/url"

	"mcpproxy/internal/ops"
)

// The operations on the whole activity log. Their paths take precedence over /activity/{id}.
var (
	GetSummary     = declareOperation("GET /activity/summary", "getActivitySummary", Look, "Summarize calls by time, and by lane, server, tool or client", (*ops.ActivityHistory).Summary).omitParams("limit", "offset", "cursor").withValidation(checkSummaryQuery)
	ExportActivity = declareOperation("GET /activity/export", "exportActivity", Look, "Export activity records as a file, newest first; records that are added during the export are not included", (*ops.ActivityHistory).Export).omitParams("limit", "offset", "cursor").withContentType("application/x-ndjson").withValidation(checkExportQuery)
	VerifyActivity = declareOperation("GET /activity/verify", "verifyActivity", Look, "Verify the hash chain of the whole activity log", (*ops.ActivityHistory).VerifyLog).withTimeout(0)
	RedactActivity = declareOperation("POST /activity/{id}/redact", "redactActivity", Decide, "Erase fields of a record permanently; the erasure is recorded", (*ops.ActivityHistory).EraseRecordFields).withTimeout(0)
	ListSessions   = declareOperation("GET /sessions", "listSessions", Look, "List client sessions from the activity log, newest first", (*ops.ActivityHistory).Sessions)
)

func checkSummaryQuery(in *ops.SummaryQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}

func checkExportQuery(in *ops.ExportQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}
