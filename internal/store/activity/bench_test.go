package activity

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// discardStore is a store that stores only the position.
type discardStore struct {
	Store // the other methods are not called
	mu    sync.Mutex
	pos   SpoolPosition
}

func (*discardStore) CallsByServer(context.Context, time.Time) (map[string]int64, error) {
	return nil, nil
}
func (*discardStore) ServerUse(context.Context, time.Time, int) (map[string]ServerUsage, error) {
	return nil, nil
}
func (*discardStore) ToolUse(context.Context) (map[[2]string]ToolUsage, error) { return nil, nil }
func (n *discardStore) ResumePosition(context.Context) (SpoolPosition, []string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pos, nil, nil
}

func (n *discardStore) ProjectEntries(_ context.Context, _ []Entry, pos SpoolPosition) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pos = pos
	return nil
}
func (*discardStore) RecordCount() int64                                            { return 0 }
func (*discardStore) UnfinishedRecords(context.Context) ([]UnfinishedRecord, error) { return nil, nil }
func (*discardStore) Sync(context.Context) error                                    { return nil }
func (*discardStore) Tidy(context.Context, time.Time, Retention, bool) (bool, error) {
	return false, nil
}
func (*discardStore) List(context.Context, Filter) (RecordPage, error) { return RecordPage{}, nil }
func (*discardStore) Get(context.Context, string) (Record, error)      { return Record{}, nil }

// unavailableStore is a store that never opens, so nothing is projected.
type unavailableStore struct{ discardStore }

func (*unavailableStore) ResumePosition(ctx context.Context) (SpoolPosition, []string, error) {
	<-ctx.Done()
	return SpoolPosition{}, nil, ctx.Err()
}

// BenchmarkBeginEnd measures the cost of recording during a call. BenchmarkPaced of package store also measures the
// work after the call.
func BenchmarkBeginEnd(b *testing.B) {
	for _, bb := range []struct {
		durability string
		writers    int
	}{{"process", 1}, {"process", 64}, {DurabilityPower, 1}, {DurabilityPower, 64}} {
		b.Run(fmt.Sprintf("%s/writers=%d", bb.durability, bb.writers), func(b *testing.B) {
			l, err := Open(Options{Dir: b.TempDir(), Durability: bb.durability}, &unavailableStore{})
			if err != nil {
				b.Fatal(err)
			}
			gone, stop := context.WithCancel(b.Context())
			stop()
			defer l.Close(gone)
			b.ReportAllocs()
			b.ResetTimer()
			began := processTime()
			var wg sync.WaitGroup
			for w := range bb.writers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := w; i < b.N; i += bb.writers {
						if err := beginAndEnd(l); err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			wg.Wait()
			b.ReportMetric(float64((processTime()-began).Nanoseconds())/1e3/float64(b.N), "cpu-µs/call")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

var judged = tool.DecisionFacts{
	Hints: tool.ResolveHints(tool.Hints{ReadOnly: tool.False}, tool.Hints{}, tool.Hints{ReadOnly: tool.False}, tool.Hints{}), CallWith: "call_tool_write",
	Fingerprint: tool.Fingerprint{}.String(), ApprovedBy: "trust:scan", ApprovedAt: new(time.UnixMilli(1_800_000_000_000)),
}.WithEncodedBytes()

func beginAndEnd(l *Log) error {
	r := Record{
		Type: ToolCall, ServerName: "github", ToolName: "create_issue",
		Arguments:    []byte(`{"owner":"octo-org","repo":"hello-world","title":"It does not start","labels":["bug","help wanted"]}`),
		RequestBytes: 312, SessionID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", RequestID: "17", Source: SourceMCP,
		Actor: "agent", ClientName: "claude-code", ClientVersion: "2.1.0",
		Metadata: Metadata{
			ToolVariant: "call_tool_write",
			Intent:      &Intent{OperationType: "write", DataSensitivity: "internal", Reason: "The user asked to file what they found"},
			Decision:    &Decision{Outcome: Allowed, Called: CalledInLane, Arguments: ArgumentsFit, ConfigRevision: "0123456789ab", DecisionFacts: judged},
		},
	}
	if err := l.Begin(&r); err != nil {
		return err
	}
	return l.End(r.ID, Outcome{
		Status: Success, Duration: 3 * time.Millisecond, Own: 312 * time.Microsecond, ResponseBytes: 170,
		Response: []byte(`{"content":[{"type":"text","text":"Created issue 4711 in octo-org/hello-world: It does not start. https://example.com/octo-org/hello-world/issues/4711"}],"isError":false}`),
	})
}
