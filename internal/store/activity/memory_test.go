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
	memory, err := os.MkdirTemp("/dev/shm", "mcpproxy-activity-") // killed tests leave files here
	if err == nil {                                               // some systems do not have it
		_ = os.Setenv("XDG_RUNTIME_DIR", memory)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(memory) // does nothing if memory is ""
		os.Exit(code)
	}))
}

// memoryStore is a Store in memory that can simulate failures.
type memoryStore struct {
	Store   // the other methods are not called
	mu      sync.Mutex
	pos     SpoolPosition
	notes   []string
	rows    []memoryRow
	batches int
	fail    error
	synced  int
}

type memoryRow struct{ entry, outcome []byte }

func (m *memoryStore) setFail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memoryStore) ResumePosition(context.Context) (SpoolPosition, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	notes := m.notes
	m.notes = nil
	return m.pos, notes, m.fail
}

func (m *memoryStore) ProjectEntries(_ context.Context, entries []Entry, pos SpoolPosition) error {
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

func (m *memoryStore) put(e Entry) {
	data := slices.Clone(e.Payload)
	if e.Kind == KindBegin || e.Kind == KindWhole {
		m.rows = append(m.rows, memoryRow{entry: data})
		return
	}
	for i := len(m.rows) - 1; i >= 0; i-- {
		if r, err := DecodeRecord(m.rows[i].entry, nil); err == nil && r.ID == e.ID && (m.rows[i].outcome == nil || e.Kind == KindRepeat) {
			m.rows[i].outcome = data
			return
		}
	}
	m.rows = append(m.rows, memoryRow{outcome: data})
}

func (m *memoryStore) records() []Record {
	var out []Record
	for _, row := range m.rows {
		r, err := DecodeRecord(row.entry, row.outcome)
		if err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

func (m *memoryStore) UnfinishedRecords(context.Context) ([]UnfinishedRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []UnfinishedRecord
	for i, r := range m.records() {
		if r.Status == Pending {
			p, err := decodePayload(m.rows[i].entry)
			if err != nil {
				return nil, err
			}
			out = append(out, UnfinishedRecord{ID: r.ID, Seq: p.seq, Facts: NewRecordFacts(&r)})
		}
	}
	return out, m.fail
}

func (m *memoryStore) Sync(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced++
	return m.fail
}

func (m *memoryStore) Tidy(context.Context, time.Time, Retention, bool) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return false, m.fail
}

func (m *memoryStore) List(context.Context, Filter) (RecordPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.records()
	slices.Reverse(records)
	return RecordPage{Records: records, Total: int64(len(records))}, m.fail
}

func (m *memoryStore) RecordCount() int64 { return 0 }

func (m *memoryStore) CallsByServer(context.Context, time.Time) (map[string]int64, error) {
	return nil, nil
}
func (m *memoryStore) ServerUse(context.Context, time.Time, int) (map[string]ServerUsage, error) {
	return nil, nil
}
func (m *memoryStore) ToolUse(context.Context) (map[[2]string]ToolUsage, error) { return nil, nil }

func (m *memoryStore) Get(_ context.Context, id string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records() {
		if r.ID == id {
			return r, nil
		}
	}
	return Record{}, problem.New(problem.NotFound, "not here", "")
}

// openLog opens a log in dir, and closes it at the end of the test.
func openLog(t *testing.T, opt Options, st Store) *Log {
	t.Helper()
	l, err := Open(opt, st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLog(t, l) })
	return l
}

// patience limits the wait for something that normally ends soon, even on a busy machine.
const patience = time.Minute

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("closing the log: %v", err)
	}
}

func listRecords(t *testing.T, l *Log) []Record {
	t.Helper()
	p, err := l.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Records
}

func recordCall(t *testing.T, l *Log, tool string) Record {
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
		t.Fatalf("got error %v, want a problem with the code %s", err, code)
	}
}
