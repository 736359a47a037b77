package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
)

func openBench(b *testing.B) (*activity.Log, *SQLite) { return openBenchAt(b, nil) }

// openBenchAt opens a log that uses now as its clock.
func openBenchAt(b *testing.B, now func() time.Time) (*activity.Log, *SQLite) {
	dir := b.TempDir()
	db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	if err := db.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: now}, db)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			b.Error(err)
		}
		db.Close()
	})
	return l, db
}

// recordCall records a call as the gateway does.
func recordCall(l *activity.Log, i int) error {
	r := activity.Record{
		Type: activity.ToolCall, ServerName: "github", ToolName: benchTools[i%len(benchTools)],
		Arguments:    []byte(`{"owner":"octo-org","repo":"hello-world","title":"It does not start","labels":["bug","help wanted"]}`),
		RequestBytes: 312, SessionID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", RequestID: "17", Source: activity.SourceMCP,
		Actor: "agent", ClientName: "claude-code", ClientVersion: "2.1.0",
		Metadata: activity.Metadata{
			ToolVariant: "call_tool_write",
			Intent:      &activity.Intent{OperationType: "write", DataSensitivity: "internal", Reason: "The user asked to file what they found"},
		},
	}
	if err := l.Begin(&r); err != nil {
		return err
	}
	return l.End(r.ID, activity.Outcome{
		Status: activity.Success, Duration: 3 * time.Millisecond, ResponseBytes: 170,
		Response: []byte(`{"content":[{"type":"text","text":"Created issue 4711 in octo-org/hello-world: It does not start. https://example.com/octo-org/hello-world/issues/4711"}],"isError":false}`),
	})
}

var benchTools = []string{"create_issue", "list_repos", "get_file", "search_code", "update_issue", "add_comment"}

// BenchmarkPaced does the same as BenchmarkRecord, but at a rate at which the projector can read the entries from
// memory.
func BenchmarkPaced(b *testing.B) {
	l, _ := openBench(b)
	b.ReportAllocs()
	b.ResetTimer()
	began := processTime()
	for i := range b.N {
		if err := recordCall(l, i); err != nil {
			b.Fatal(err)
		}
		if i%2000 == 1999 || i == b.N-1 {
			if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64((processTime()-began).Nanoseconds())/1e3/float64(b.N), "cpu-µs/call")
}

// BenchmarkRecord measures the whole cost of recording a call: the beginning, the end, and the projection into the
// database.
func BenchmarkRecord(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l, _ := openBench(b)
			b.ReportAllocs()
			b.ResetTimer()
			began := processTime()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := w; i < b.N; i += writers {
						if err := recordCall(l, i); err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			wg.Wait()
			b.StopTimer()
			durable := b.Elapsed()
			if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64((processTime()-began).Nanoseconds())/1e3/float64(b.N), "cpu-µs/call")
			b.ReportMetric(float64(b.N)/durable.Seconds(), "calls/s")
		})
	}
}
