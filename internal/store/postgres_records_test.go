//go:build unix

package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/pgtest"
)

// TestPostgresRecordsView reads the records as an operator who has permission to read only the view.
func TestPostgresRecordsView(t *testing.T) {
	t.Parallel()
	server := pgtest.SharedServer(t)
	address, dir := server.CreateDatabase(t), t.TempDir()
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, openPostgres(t, address, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	for _, r := range []activity.Record{
		{Type: activity.ToolCall, Status: activity.Success, ServerName: "s", ToolName: "t", DurationMS: 12, OwnUS: 345, SessionID: "se",
			RequestID: "re", Actor: "agent", ClientName: "client"},
		{Type: activity.System, Status: activity.Success},
	} {
		if err := l.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	page, err := l.List(t.Context(), activity.Filter{})
	if err != nil || page.Total != 2 {
		t.Fatalf("got %d records, %v", page.Total, err)
	}
	query := func(statements string) string {
		t.Helper()
		out, err := server.QueryIn(pgtest.DatabaseName(address), statements)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	query("CREATE ROLE grafana LOGIN; GRANT USAGE ON SCHEMA mcpproxy TO grafana; GRANT SELECT ON mcpproxy.activity_records TO grafana")
	got := query(`SET ROLE grafana; SELECT id, (extract(epoch FROM "timestamp") * 1000000)::bigint, type, status, coalesce(server_name, '-'), coalesce(tool_name, '-'),
		coalesce(operation_type, '-'), coalesce(actor, '-'), coalesce(client_name, '-'), coalesce(session_id, '-'), coalesce(request_id, '-'),
		coalesce(error_code, '-'), duration_ms, own_us, repeated, length(instance) > 0 FROM mcpproxy.activity_records ORDER BY "timestamp"`)
	call, system := page.Records[1], page.Records[0]
	want := fmt.Sprintf("SET\n%s|%d|tool_call|success|s|t|-|agent|client|se|re|-|12|345|1|t\n%s|%d|system|success|-|-|-|-|-|-|-|-|0|0|1|t",
		call.ID, call.Timestamp.UnixMicro(), system.ID, system.Timestamp.UnixMicro())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if out, err := server.QueryIn(pgtest.DatabaseName(address), "SET ROLE grafana; SELECT * FROM mcpproxy.activity"); err == nil {
		t.Errorf("the table can also be read: %s", out)
	}
}
