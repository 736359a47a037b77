package activity

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// nowhere is a store that keeps nothing but the position.
type nowhere struct {
	Store // the rest is not asked for
	mu    sync.Mutex
	pos   Position
}

func (*nowhere) Calls(context.Context, time.Time) (map[string]int64, error) { return nil, nil }
func (*nowhere) ServerUse(context.Context, time.Time, int) (map[string]ServerUse, error) {
	return nil, nil
}
func (*nowhere) ToolUse(context.Context) (map[[2]string]Use, error) { return nil, nil }
func (n *nowhere) Resume(context.Context) (Position, []string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pos, nil, nil
}

func (n *nowhere) Project(_ context.Context, _ []Entry, pos Position) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pos = pos
	return nil
}
func (*nowhere) Count() int64                                  { return 0 }
func (*nowhere) Pending(context.Context) ([]Unfinished, error) { return nil, nil }
func (*nowhere) Sync(context.Context) error                    { return nil }
func (*nowhere) Tidy(context.Context, time.Time, Retention, bool) (bool, error) {
	return false, nil
}
func (*nowhere) List(context.Context, Filter) (Page, error)  { return Page{}, nil }
func (*nowhere) Get(context.Context, string) (Record, error) { return Record{}, nil }

// away is a store that never is ready: nothing is projected.
type away struct{ nowhere }

func (*away) Resume(ctx context.Context) (Position, []string, error) {
	<-ctx.Done()
	return Position{}, nil, ctx.Err()
}

// BenchmarkBeginEnd is what recording costs on the path of a call. The rest is what
// BenchmarkPaced of the package store counts, too.
func BenchmarkBeginEnd(b *testing.B) {
	for _, bb := range []struct {
		durability string
		writers    int
	}{{"process", 1}, {"process", 64}, {DurabilityPower, 1}, {DurabilityPower, 64}} {
		b.Run(fmt.Sprintf("%s/writers=%d", bb.durability, bb.writers), func(b *testing.B) {
			l, err := Open(Options{Dir: b.TempDir(), Durability: bb.durability}, &away{})
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
						if err := beginEnd(l); err != nil {
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
	Hints: tool.ResolveHints(tool.Hints{ReadOnly: tool.False}, tool.Hints{}, tool.Hints{ReadOnly: tool.False}), CallWith: "call_tool_write",
	Fingerprint: tool.Fingerprint{}.String(), ApprovedBy: "trust:scan", ApprovedAt: new(time.UnixMilli(1_800_000_000_000)),
}.WithEncodedBytes()

func beginEnd(l *Log) error {
	r := Record{
		Type: ToolCall, ServerName: "github", ToolName: "create_issue",
		Arguments:    []byte(`{"owner":"octo-org","repo":"hello-world","title":"It does not start","labels":["bug","help wanted"]}`),
		RequestBytes: 312, SessionID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", RequestID: "17", Source: SourceMCP,
		Actor: "agent", ClientName: "claude-code", ClientVersion: "2.1.0",
		Metadata: Metadata{
			ToolVariant: "call_tool_write",
			Intent:      &Intent{OperationType: "write", DataSensitivity: "internal", Reason: "The user asked to file what they found"},
			Decision:    &Decision{Outcome: Allowed, Called: InLane, Arguments: Fits, ConfigRevision: "0123456789ab", DecisionFacts: judged},
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
