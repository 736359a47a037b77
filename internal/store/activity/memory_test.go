package activity

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

func TestMain(m *testing.M) {
	volume.ConfigureRapid()
	memory, err := os.MkdirTemp("/dev/shm", "mcpproxy-activity-") // a process that is killed leaves its newest records there
	if err == nil {                                               // not every system has it
		_ = os.Setenv("XDG_RUNTIME_DIR", memory)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(memory) // "" removes nothing
		os.Exit(code)
	}))
}

// memory is a Store in memory, which can be made to fail.
type memory struct {
	Store   // the rest is not asked for
	mu      sync.Mutex
	pos     Position
	notes   []string
	rows    []memoryRow
	batches int
	fail    error
	synced  int
}

type memoryRow struct{ entry, outcome []byte }

func (m *memory) setFail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memory) Resume(context.Context) (Position, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	notes := m.notes
	m.notes = nil
	return m.pos, notes, m.fail
}

func (m *memory) Project(_ context.Context, entries []Entry, pos Position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, e := range entries {
		m.put(e)
	}
	m.pos = pos
	m.batches++
	return nil
}

func (m *memory) put(e Entry) {
	data := slices.Clone(e.Payload)
	if e.Kind == KindBegin || e.Kind == KindWhole {
		m.rows = append(m.rows, memoryRow{entry: data})
		return
	}
	for i := len(m.rows) - 1; i >= 0; i-- {
		if r, err := Decode(m.rows[i].entry, nil); err == nil && r.ID == e.ID && (m.rows[i].outcome == nil || e.Kind == KindRepeat) {
			m.rows[i].outcome = data
			return
		}
	}
	m.rows = append(m.rows, memoryRow{outcome: data})
}

func (m *memory) records() []Record {
	var out []Record
	for _, row := range m.rows {
		r, err := Decode(row.entry, row.outcome)
		if err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

func (m *memory) Pending(context.Context) ([]Unfinished, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Unfinished
	for i, r := range m.records() {
		if r.Status == Pending {
			p, err := decodePayload(m.rows[i].entry)
			if err != nil {
				return nil, err
			}
			out = append(out, Unfinished{ID: r.ID, Seq: p.seq, Facts: FactsOf(&r)})
		}
	}
	return out, m.fail
}

func (m *memory) Sync(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced++
	return m.fail
}

func (m *memory) Tidy(context.Context, time.Time, Retention, bool) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return false, m.fail
}

func (m *memory) List(context.Context, Filter) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.records()
	slices.Reverse(records)
	return Page{Records: records, Total: int64(len(records))}, m.fail
}

func (m *memory) Count() int64 { return 0 }

func (m *memory) Calls(context.Context, time.Time) (map[string]int64, error) { return nil, nil }
func (m *memory) ServerUse(context.Context, time.Time, int) (map[string]ServerUse, error) {
	return nil, nil
}
func (m *memory) ToolUse(context.Context) (map[[2]string]Use, error) { return nil, nil }

func (m *memory) Get(_ context.Context, id string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records() {
		if r.ID == id {
			return r, nil
		}
	}
	return Record{}, problem.New(problem.NotFound, "not here", "")
}

// openLog opens a log in dir that is closed with the test.
func openLog(t *testing.T, opt Options, st Store) *Log {
	t.Helper()
	l, err := Open(opt, st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLog(t, l) })
	return l
}

// patience bounds what ends soon, however busy the machine is.
const patience = time.Minute

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func list(t *testing.T, l *Log) []Record {
	t.Helper()
	p, err := l.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Records
}

func call(t *testing.T, l *Log, tool string) Record {
	t.Helper()
	r := Record{Type: ToolCall, ServerName: "notes", ToolName: tool, Arguments: []byte(`{"n":1}`)}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	o := Outcome{Status: Success, Duration: 3 * time.Millisecond, Response: []byte(`{"content":[]}`), ResponseBytes: 14}
	if err := l.End(r.ID, o); err != nil {
		t.Fatal(err)
	}
	return r
}

func wantCode(t *testing.T, err error, code problem.Code) {
	t.Helper()
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code != code {
		t.Fatalf("got error %v, want a problem %s", err, code)
	}
}
