package ops_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// open opens a real log with a real database.
func open(t *testing.T) (*activity.Log, *ops.ActivityHistory) {
	t.Helper()
	dir := t.TempDir()
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(context.Background()), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return l, ops.NewActivityHistory(l, nil)
}

func put(t *testing.T, l *activity.Log, r activity.Record) activity.Record {
	t.Helper()
	if err := l.Append(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func export(t *testing.T, h *ops.ActivityHistory, q ops.ExportQuery) (string, ops.Download) {
	t.Helper()
	f, err := h.Export(t.Context(), ops.Caller{}, q)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Stream(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String(), f
}

func call(server, status, lane string) activity.Record {
	return activity.Record{Type: activity.ToolCall, Status: activity.Status(status), ServerName: server, ToolName: "read", DurationMS: 7, OwnUS: 90,
		Arguments: []byte(`{"a":1}`), Response: []byte(`{"b":2}`), SessionID: "s", ClientName: "cursor", Actor: "agent",
		Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: lane, Reason: "=1+1"}}}
}

func TestExport(t *testing.T) {
	t.Parallel()
	l, h := open(t)
	first := put(t, l, call("notes", "success", "read"))
	put(t, l, call("=cmd|' /C calc'!A0", "error", "write"))
	last := put(t, l, call("@x", "success", "destructive"))

	text, file := export(t, h, ops.ExportQuery{})
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var r activity.Record
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || len(lines) != 4 || !strings.HasPrefix(lines[3], `{"end":`) || r.ID != last.ID || r.Arguments != nil || r.Response != nil || r.OwnUS != 90 {
		t.Errorf("%d lines, %+v, %v", len(lines), r, err)
	}
	if file.Type != "application/x-ndjson" || !strings.HasSuffix(file.Name, "Z.jsonl") {
		t.Errorf("%s, %s", file.Type, file.Name)
	}
	text, _ = export(t, h, ops.ExportQuery{Bodies: true, Filter: activity.Filter{Servers: []string{"notes"}}})
	alone, err := l.Get(t.Context(), first.ID)
	hash := alone.Chain.Hash
	alone.Chain = nil
	want, _ := json.Marshal(alone)
	shown, proof, _ := strings.Cut(text, `,"proof":{"line":1,"entries":[{"seq":1,"hash":"`+hash)
	if err != nil || shown != strings.TrimSuffix(string(want), "}") || strings.Count(proof, "\n") != 2 {
		t.Errorf("%s, want %s, %v", text, want, err)
	}

	text, file = export(t, h, ops.ExportQuery{Format: ops.CSV, Bodies: true})
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 4 || file.Type != "text/csv; charset=utf-8" || !strings.HasSuffix(file.Name, "Z.csv") {
		t.Fatalf("%d rows, %v, %s, %s", len(rows), err, file.Type, file.Name)
	}
	if got := strings.Join(rows[0], ","); got != "id,time,type,status,server,tool,operation_type,duration_ms,own_us,session,actor,client,error_code,reason,repeated,arguments,response" {
		t.Error(got)
	}
	if got := rows[2]; got[4] != "'=cmd|' /C calc'!A0" || got[13] != "'=1+1" || got[7] != "7" || got[14] != "1" || got[15] != `{"a":1}` {
		t.Errorf("%q", got)
	}
	for _, row := range rows {
		for _, cell := range row {
			if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "@") {
				t.Errorf("%q would be evaluated as a formula", cell)
			}
		}
	}
	if text, _ := export(t, h, ops.ExportQuery{Format: ops.CSV, Filter: activity.Filter{Servers: []string{"nobody"}}}); strings.Count(text, "\n") != 1 {
		t.Errorf("an empty export is %q", text)
	}
}

// watched receives an export. It measures the memory use, and adds records to the log at the same time.
type watched struct {
	t      *testing.T
	log    *activity.Log
	writes int
	lines  int
	heap   uint64
	bytes  int
	most   int // maximum number of bytes in one write
}

func (w *watched) Write(p []byte) (int, error) {
	w.bytes += len(p)
	w.most = max(w.most, len(p))
	w.lines += bytes.Count(p, []byte{'\n'})
	if p[len(p)-1] != '\n' {
		w.t.Error("a write ends within a line")
	}
	put(w.t, w.log, activity.Record{Type: activity.System})
	if w.writes++; w.writes%10 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		w.heap = max(w.heap, m.HeapAlloc)
	}
	return len(p), nil
}

// TestExportsTakeNoMemory checks the memory use of an export of 100,000 records (60 MB) while more records arrive. A
// quick run has fewer records and checks only the size of the writes, because the log itself holds up to 12 MB that
// wait for the database.
func TestExportsTakeNoMemory(t *testing.T) {
	records := volume.FullOrQuick(100_000, 5_000)
	l, h := open(t)
	r := call("notes", "success", "read")
	r.Arguments = []byte(`"` + strings.Repeat("x", 300) + `"`)
	for range records {
		put(t, l, r)
	}
	if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := h.Export(t.Context(), ops.Caller{}, ops.ExportQuery{Bodies: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, log: l}
	if err := f.Stream(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w.lines != records+1 || w.heap == 0 || w.most > 256<<10 {
		t.Errorf("%d records, %d bytes, up to %d in a write", w.lines, w.bytes, w.most)
	}
	if volume.IsFull() && w.heap > before.HeapAlloc+32<<20 {
		t.Errorf("%d MB of memory, %d before", w.heap>>20, before.HeapAlloc>>20)
	}
	failed := errors.New("gone")
	if err := f.Stream(t.Context(), failing{failed}); err != failed {
		t.Errorf("a failed writer: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSummary(t *testing.T) {
	t.Parallel()
	l, h := open(t)
	put(t, l, call("notes", "success", "read"))
	put(t, l, call("notes", "error", "write"))
	late := put(t, l, call("github", "success", "write"))
	for range 3 {
		r := activity.Record{ServerName: "notes", Actor: "agent", Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: "write"}}}
		if err := l.AppendRefusal(&r); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.Summary(t.Context(), ops.Caller{}, ops.SummaryQuery{Group: activity.ByServer})
	if err != nil || s.Records != 4 || s.Calls != 3 || s.Failed != 1 || s.FailedTool != 1 || s.Refused != 3 || s.StepSeconds != 1800 ||
		s.Until.Sub(s.Since) != 24*time.Hour || len(s.Buckets) != 49 || s.P50 != 7 || s.OwnP50 != 90 || !s.Last.Equal(late.Timestamp) {
		t.Errorf("%+v, %v", s, err)
	}
	if len(s.Groups) != 2 || s.Groups[0].Key != "notes" || s.Groups[0].Calls != 2 || s.Groups[0].Refused != 3 {
		t.Errorf("%+v", s.Groups)
	}
	// Filters are combined, for refusals, too.
	f := activity.Filter{Statuses: []activity.Status{activity.Blocked}, IntentTypes: []string{"write"}, Servers: []string{"notes"}}
	s, err = h.Summary(t.Context(), ops.Caller{}, ops.SummaryQuery{Filter: f})
	page, listErr := l.List(t.Context(), f)
	if err != nil || listErr != nil || s.Records != 1 || s.Refused != 3 || s.Calls != 0 || page.Total != 1 || s.Last != nil {
		t.Errorf("%+v, %d, %v, %v", s, page.Total, err, listErr)
	}
	// If the period contains no calls, the summary still contains the last call.
	s, err = h.Summary(t.Context(), ops.Caller{}, ops.SummaryQuery{Filter: activity.Filter{Since: time.Now().Add(time.Hour), Until: time.Now().Add(2 * time.Hour)}})
	if err != nil || s.Records != 0 || s.Last == nil || !s.Last.Equal(late.Timestamp) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestStepsAndPeriods(t *testing.T) {
	t.Parallel()
	_, h := open(t)
	at := time.Date(2026, 3, 4, 10, 47, 13, 0, time.UTC)
	for _, tt := range []struct {
		in      ops.SummaryQuery
		step    time.Duration
		buckets int
		first   string
	}{
		{ops.SummaryQuery{Filter: activity.Filter{Until: at}}, 30 * time.Minute, 49, "2026-03-03T10:30:00Z"},
		{ops.SummaryQuery{Filter: activity.Filter{Until: at}, Period: "10s"}, time.Second, 10, "2026-03-04T10:47:03Z"},
		{ops.SummaryQuery{Filter: activity.Filter{Until: at}, Period: "90d"}, 48 * time.Hour, 46, "2025-12-04T00:00:00Z"},
		{ops.SummaryQuery{Filter: activity.Filter{Until: at}, Step: "3h"}, 3 * time.Hour, 9, "2026-03-03T09:00:00Z"},
		{ops.SummaryQuery{Filter: activity.Filter{Since: time.Unix(0, 0), Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}}, 0, 60, "1970-01-01T00:00:00Z"},
	} {
		s, err := h.Summary(t.Context(), ops.Caller{}, tt.in)
		if err != nil || tt.step > 0 && s.StepSeconds != int64(tt.step/time.Second) || len(s.Buckets) != tt.buckets || s.Buckets[0].Start.Format(time.RFC3339) != tt.first {
			t.Errorf("%+v: step %d, %d buckets from %v, %v", tt.in, s.StepSeconds, len(s.Buckets), s.Buckets[:min(1, len(s.Buckets))], err)
		}
	}
	for name, in := range map[string]ops.SummaryQuery{
		"step":       {Step: "3m"},
		"step ":      {Step: "0s"},
		"step  ":     {Step: "1500ms"},
		"period":     {Period: "yesterday"},
		"period ":    {Period: "-1h"},
		"period  ":   {Period: "1h", Filter: activity.Filter{Since: at}},
		"start_time": {Filter: activity.Filter{Since: at, Until: at}},
	} {
		_, err := h.Summary(t.Context(), ops.Caller{}, in)
		if p := problem.From(err); p == nil || p.Code != problem.InvalidParameter || p.Detail("parameter") != strings.TrimSpace(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Summary(t.Context(), ops.Caller{}, ops.SummaryQuery{Step: "217s"}); err != nil {
		t.Errorf("the step that the message suggests: %v", err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	l, h := open(t)
	for i := range 30 {
		r := call("notes", "success", "read")
		r.SessionID = fmt.Sprint("s", i%10)
		put(t, l, r)
	}
	got, err := h.Sessions(t.Context(), ops.Caller{}, ops.SessionQuery{Limit: 3, Offset: 2})
	if err != nil || got.Total != 10 || len(got.Sessions) != 3 || got.Sessions[0].ID != "s7" || got.Sessions[0].Calls != 3 || got.Sessions[0].ClientName != "cursor" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := h.Sessions(t.Context(), ops.Caller{}, ops.SessionQuery{Period: "x"}); problem.From(err).Code != problem.InvalidParameter {
		t.Errorf("%v", err)
	}
	if v, err := h.VerifyLog(t.Context(), ops.Caller{}, ops.Nothing{}); err != nil || !v.OK || v.Records != 30 {
		t.Errorf("%+v, %v", v, err)
	}
}
