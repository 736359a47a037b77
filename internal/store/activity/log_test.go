package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
)

func TestACallIsOnRecord(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	r := Record{
		Type: ToolCall, ServerName: "github", ToolName: "create_issue", Arguments: []byte(`{"title":"x"}`),
		Source: SourceMCP, Actor: "agent", SessionID: "s", RequestID: "1", ClientName: "c", ClientVersion: "2",
		Metadata: Metadata{ToolVariant: "call_tool_write", Intent: &Intent{OperationType: "write"}, Warnings: []string{"one"}},
	}
	before := time.Now().Add(-time.Microsecond)
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	if r.Status != Pending || len(r.ID) != ulidLen || r.Timestamp.Before(before) {
		t.Fatalf("record after Begin: %+v", r)
	}
	if got := listRecords(t, l); len(got) != 1 || got[0].Status != Pending || got[0].ID != r.ID {
		t.Fatalf("record before End: %+v", got)
	}
	err := l.End(r.ID, Outcome{
		Status: Failed, Response: []byte(`{"isError":true}`), ResponseBytes: 16, ErrorMessage: "no", ErrorCode: "TIMEOUT",
		Duration: 1500 * time.Millisecond, Warnings: []string{"two"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := listRecords(t, l)[0]
	if got.Status != Failed || got.DurationMS != 1500 || string(got.Response) != `{"isError":true}` || got.ErrorMessage != "no" ||
		got.Metadata.ErrorCode != "TIMEOUT" || !slices.Equal(got.Metadata.Warnings, []string{"one", "two"}) ||
		!got.Timestamp.Equal(r.Timestamp) || got.Metadata.Intent.OperationType != "write" {
		t.Fatalf("record after End: %+v", got)
	}
}

func TestARecordEndsOnce(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	r := recordCall(t, l, "a")
	for _, id := range []string{r.ID, "", "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4"} {
		if err := l.End(id, Outcome{Status: Success}); err == nil {
			t.Errorf("End(%q) succeeded", id)
		}
	}
	if got := listRecords(t, l); len(got) != 1 || got[0].Status != Success {
		t.Fatalf("%+v", got)
	}
}

func TestSecretsAreMaskedBeforeTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	secret := "ghp_" + strings.Repeat("aB3dE6", 6)
	l := openLog(t, Options{Dir: dir}, &memoryStore{})
	r := Record{
		Type: ToolCall, Arguments: []byte(`{"token":"` + secret + `"}`),
		Metadata: Metadata{Intent: &Intent{OperationType: "read", Reason: "use " + secret}},
	}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	if r.Metadata.Intent.Reason != "use "+secret || !strings.Contains(string(r.Arguments), secret) {
		t.Error("the caller's record was changed")
	}
	o := Outcome{Status: Failed, Response: []byte(`{"text":"` + secret + `"}`), ErrorMessage: "bad " + secret}
	if err := l.End(r.ID, o); err != nil {
		t.Fatal(err)
	}
	err := l.Append(&Record{Type: PolicyDecision, Arguments: []byte(`["` + secret + `"]`), ErrorMessage: secret,
		Response: []byte(`"` + secret + `"`), Metadata: Metadata{Detail: secret}})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s contains the secret", filepath.Base(f))
		}
	}
	for _, r := range listRecords(t, l) {
		if strings.Contains(fmt.Sprintf("%s %s %+v %+v", r.Arguments, r.Response, r, r.Metadata.Intent), secret) {
			t.Errorf("the record contains the secret: %+v", r)
		}
	}
}

func TestLongResponsesAreCut(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir(), MaxResponse: 100}, &memoryStore{})
	r := Record{Type: ToolCall}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	long := `{"content":[{"type":"text","text":"` + strings.Repeat("é", 5000) + `"}]}`
	if err := l.End(r.ID, Outcome{Status: Success, Response: []byte(long), ResponseBytes: int64(len(long))}); err != nil {
		t.Fatal(err)
	}
	got := listRecords(t, l)[0]
	if !got.ResponseTruncated || got.ResponseBytes != int64(len(long)) || !strings.HasPrefix(string(got.Response), `"{\"content\":[{`) {
		t.Fatalf("%+v", got)
	}
}

func TestTheSpoolHoldsWhileTheStoreIsAway(t *testing.T) {
	st := &memoryStore{fail: errors.New("no database")}
	l := openLog(t, Options{Dir: t.TempDir(), MaxSpool: 4000}, st)
	r := Record{Type: ToolCall}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	_, err := l.List(t.Context(), Filter{})
	wantCode(t, err, problem.AuditUnavailable)
	if h := l.Health(); !h.Degraded || h.Backlog != 1 || !strings.Contains(h.Message, "no database") {
		t.Errorf("health = %+v", h)
	}
	for err == nil || l.Health().Spool < 4000 {
		if err = l.Append(&Record{Type: System}); err != nil {
			break
		}
	}
	wantCode(t, err, problem.AuditUnavailable)
	if h := l.Health(); !strings.Contains(h.Message, "limit") {
		t.Errorf("health = %+v", h)
	}
	// A record that has begun can end even if the spool has reached its maximum size.
	if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
		t.Error(err)
	}
	st.setFail(nil)
	waitForStore(t, l)
	for _, got := range listRecords(t, l) {
		if got.ID == r.ID && got.Status == Success {
			return
		}
	}
	t.Error("the record is not in the store")
}

func TestAFullDiskRefusesCallsAndRecovers(t *testing.T) {
	d := &faultyDisk{room: -1}
	l := openLog(t, Options{Dir: t.TempDir(), openFile: d.open}, &memoryStore{})
	r := Record{Type: ToolCall, ToolName: "running"}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	d.set(func(d *faultyDisk) { d.room = 10 })
	wantCode(t, l.Begin(&Record{Type: ToolCall}), problem.AuditUnavailable)
	wantCode(t, l.Append(&Record{Type: System}), problem.AuditUnavailable)
	wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
	// While the outcome is retried, the message is about the last failed write or about outcomes that wait.
	if h := l.Health(); !h.Degraded || !strings.Contains(h.Message, "cannot be written") && !strings.Contains(h.Message, "wait to be written") {
		t.Errorf("health = %+v", h)
	}
	d.set(func(d *faultyDisk) { d.room = -1 })
	l.outcomes.retryWaiting()
	if n := l.outcomes.waitingCount(); n != 0 {
		t.Errorf("%d outcomes still wait", n)
	}
	got := listRecords(t, l)
	if len(got) != 1 || got[0].Status != Success {
		t.Fatalf("%+v", got)
	}
	if h := l.Health(); h.Degraded {
		t.Errorf("health = %+v", h)
	}
}

func TestOutcomesThatWaitTakeBoundedMemory(t *testing.T) {
	d := &faultyDisk{room: -1}
	l := openLog(t, Options{Dir: t.TempDir(), openFile: d.open, MaxResponse: 2 << 20}, &memoryStore{})
	var ids []string
	for range 8 {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	d.set(func(d *faultyDisk) { d.room = 0 })
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for _, id := range ids {
		wantCode(t, l.End(id, Outcome{Status: Success, Response: big}), problem.AuditUnavailable)
	}
	size := 0
	for _, d := range l.outcomes.waiting {
		size += len(d.body.data)
	}
	if len(l.outcomes.waiting) != len(ids) || size > maxWaitingBytes+4096 {
		t.Errorf("%d outcomes with %d bytes wait", len(l.outcomes.waiting), size)
	}
	d.set(func(d *faultyDisk) { d.room = -1 })
}

func TestAClosedLogRefuses(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	closeLog(t, l)
	wantCode(t, l.Begin(&Record{}), problem.AuditUnavailable)
	wantCode(t, l.Append(&Record{}), problem.AuditUnavailable)
}

func TestGetOfNoID(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	for _, id := range []string{"", "x y", "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4Z", "Ü"} {
		_, err := l.Get(t.Context(), id)
		wantCode(t, err, problem.NotFound)
	}
}

func TestAQueryEndsWithItsContext(t *testing.T) {
	st := &blockedStore{memoryStore: &memoryStore{}, open: make(chan struct{})}
	l := openLog(t, Options{Dir: t.TempDir()}, st)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.List(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(st.open)
	listRecords(t, l)
}

// blockedStore is a store that takes long to open.
type blockedStore struct {
	*memoryStore
	open chan struct{}
}

func (b *blockedStore) ResumePosition(ctx context.Context) (SpoolPosition, []string, error) {
	select {
	case <-b.open:
		return b.memoryStore.ResumePosition(ctx)
	case <-ctx.Done():
		return SpoolPosition{}, nil, ctx.Err()
	}
}
