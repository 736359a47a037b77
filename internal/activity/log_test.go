package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/problem"
)

func TestACallIsOnRecord(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memory{})
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
		t.Fatalf("begun as %+v", r)
	}
	if got := list(t, l); len(got) != 1 || got[0].Status != Pending || got[0].ID != r.ID {
		t.Fatalf("while it runs: %+v", got)
	}
	err := l.End(r.ID, Outcome{
		Status: Failed, Response: []byte(`{"isError":true}`), ResponseBytes: 16, ErrorMessage: "no", ErrorCode: "TIMEOUT",
		Duration: 1500 * time.Millisecond, Warnings: []string{"two"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := list(t, l)[0]
	if got.Status != Failed || got.DurationMS != 1500 || string(got.Response) != `{"isError":true}` || got.ErrorMessage != "no" ||
		got.Metadata.ErrorCode != "TIMEOUT" || !slices.Equal(got.Metadata.Warnings, []string{"one", "two"}) ||
		!got.Timestamp.Equal(r.Timestamp) || got.Metadata.Intent.OperationType != "write" {
		t.Fatalf("ended as %+v", got)
	}
}

func TestARecordEndsOnce(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memory{})
	r := call(t, l, "a")
	for _, id := range []string{r.ID, "", "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4"} {
		if err := l.End(id, Outcome{Status: Success}); err == nil {
			t.Errorf("ending %q worked", id)
		}
	}
	if got := list(t, l); len(got) != 1 || got[0].Status != Success {
		t.Fatalf("%+v", got)
	}
}

func TestSecretsAreMaskedBeforeTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	secret := "ghp_" + strings.Repeat("aB3dE6", 6)
	var seen []Record
	l := openLog(t, Options{Dir: dir, Observer: func(r Record) { seen = append(seen, r) }}, &memory{})
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
			t.Errorf("%s holds the secret", filepath.Base(f))
		}
	}
	for _, r := range append(seen, list(t, l)...) {
		if strings.Contains(fmt.Sprintf("%s %s %+v %+v", r.Arguments, r.Response, r, r.Metadata.Intent), secret) {
			t.Errorf("shown: %+v", r)
		}
	}
}

func TestLongResponsesAreCut(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir(), MaxResponse: 100}, &memory{})
	r := Record{Type: ToolCall}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	long := `{"content":[{"type":"text","text":"` + strings.Repeat("é", 5000) + `"}]}`
	if err := l.End(r.ID, Outcome{Status: Success, Response: []byte(long), ResponseBytes: int64(len(long))}); err != nil {
		t.Fatal(err)
	}
	got := list(t, l)[0]
	if !got.ResponseTruncated || got.ResponseBytes != int64(len(long)) || !strings.HasPrefix(string(got.Response), `"{\"content\":[{`) {
		t.Fatalf("%+v", got)
	}
}

func TestObserverSeesBeginningsAndEnds(t *testing.T) {
	var seen []string
	l := openLog(t, Options{Dir: t.TempDir(), Observer: func(r Record) {
		seen = append(seen, string(r.Type)+" "+string(r.Status)+" "+r.ToolName+" "+string(r.Response))
	}}, &memory{})
	call(t, l, "a")
	if err := l.Append(&Record{Type: PolicyDecision, Status: Blocked, ToolName: "b"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"tool_call pending a ", `tool_call success a {"content":[]}`, "policy_decision blocked b "}
	if !slices.Equal(seen, want) {
		t.Fatalf("saw %q", seen)
	}
}

func TestWhatRanWhenTheProcessDiedIsInterrupted(t *testing.T) {
	for _, projected := range []bool{false, true} {
		t.Run(fmt.Sprintf("projected=%v", projected), func(t *testing.T) {
			dir, st := t.TempDir(), &memory{}
			l, err := Open(Options{Dir: dir}, st)
			if err != nil {
				t.Fatal(err)
			}
			done := call(t, l, "done")
			r := Record{Type: ToolCall, ToolName: "running", Metadata: Metadata{Intent: &Intent{OperationType: "read"}}}
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			if projected {
				list(t, l)
			}
			abandon(t, l)
			l = openLog(t, Options{Dir: dir}, st)
			now := Record{Type: ToolCall, ToolName: "now"}
			if err := l.Begin(&now); err != nil {
				t.Fatal(err)
			}
			got := list(t, l)
			status := map[string]Status{}
			for _, r := range got {
				status[r.ID] = r.Status
			}
			if status[done.ID] != Success || status[r.ID] != Interrupted || status[now.ID] != Pending || len(got) != 3 {
				t.Fatalf("%+v", got)
			}
			if v, err := l.Verify(t.Context()); err != nil || v.Break != "" {
				t.Fatal(v, err)
			}
		})
	}
}

// abandon stops a log as the death of its process does: nothing is finished.
func abandon(t *testing.T, l *Log) {
	t.Helper()
	l.stop()
	<-l.stopped
	if err := l.spool.close(); err != nil {
		t.Fatal(err)
	}
}

// TestTheStoreGetsEverythingOnce restarts again and again, with a store that
// fails now and then and memory for little.
func TestTheStoreGetsEverythingOnce(t *testing.T) {
	dir, st := t.TempDir(), &memory{}
	var want []string
	for round := range 6 {
		opt := Options{Dir: dir, maxSegment: 20_000, maxQueue: 2 * blockSize}
		l, err := Open(opt, st)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 200 {
					r := call(t, l, "x")
					mu.Lock()
					want = append(want, r.ID)
					mu.Unlock()
				}
			}()
		}
		if round%2 == 0 {
			st.setFail(errors.New("away"))
		}
		wg.Wait()
		st.setFail(nil)
		if round == 3 {
			abandon(t, l)
			continue
		}
		waitFor(t, l)
		closeLog(t, l)
	}
	l := openLog(t, Options{Dir: dir}, st)
	var got []string
	for _, r := range list(t, l) {
		if r.Status != Success {
			t.Fatalf("%+v", r)
		}
		got = append(got, r.ID)
	}
	slices.Sort(want)
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records are in the store, %d were made", len(got), len(want))
	}
	if n := len(l.spool.mark().segments); n > 1+keepSegments+removeSegments {
		t.Errorf("%d segments are left", n)
	}
}

// waitFor lists until the store is there again.
func waitFor(t *testing.T, l *Log) {
	t.Helper()
	for {
		_, err := l.List(t.Context(), Filter{})
		if err == nil {
			return
		}
		wantCode(t, err, problem.AuditUnavailable)
		l.mu.Lock()
		if l.progress == nil {
			l.progress = make(chan struct{})
		}
		progress, failing := l.progress, l.storeErr != nil
		l.mu.Unlock()
		if !failing {
			continue
		}
		select {
		case <-progress:
		case <-t.Context().Done():
			t.Fatal("the store did not come back")
		}
	}
}

func TestTheSpoolHoldsWhileTheStoreIsAway(t *testing.T) {
	st := &memory{fail: errors.New("no database")}
	l := openLog(t, Options{Dir: t.TempDir(), MaxSpool: 4000}, st)
	r := Record{Type: ToolCall}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	_, err := l.List(t.Context(), Filter{})
	wantCode(t, err, problem.AuditUnavailable)
	if h := l.Health(); !h.Degraded || h.Backlog != 1 || !strings.Contains(h.Message, "no database") {
		t.Errorf("health: %+v", h)
	}
	for err == nil || l.Health().Spool < 4000 {
		if err = l.Append(&Record{Type: System}); err != nil {
			break
		}
	}
	wantCode(t, err, problem.AuditUnavailable)
	if h := l.Health(); !strings.Contains(h.Message, "limit") {
		t.Errorf("health: %+v", h)
	}
	// What has begun can end, also beyond the limit.
	if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
		t.Error(err)
	}
	st.setFail(nil)
	waitFor(t, l)
	for _, got := range list(t, l) {
		if got.ID == r.ID && got.Status == Success {
			return
		}
	}
	t.Error("the record is not in the store")
}

func TestAFullDiskRefusesCallsAndRecovers(t *testing.T) {
	d := &disk{room: -1}
	l := openLog(t, Options{Dir: t.TempDir(), openFile: d.open}, &memory{})
	r := Record{Type: ToolCall, ToolName: "running"}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	d.set(func(d *disk) { d.room = 10 })
	wantCode(t, l.Begin(&Record{Type: ToolCall}), problem.AuditUnavailable)
	wantCode(t, l.Append(&Record{Type: System}), problem.AuditUnavailable)
	wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
	if h := l.Health(); !h.Degraded || !strings.Contains(h.Message, "cannot be written") {
		t.Errorf("health: %+v", h)
	}
	d.set(func(d *disk) { d.room = -1 })
	if n := l.retryEnds(); n != 0 {
		t.Errorf("%d outcomes still wait", n)
	}
	got := list(t, l)
	if len(got) != 1 || got[0].Status != Success {
		t.Fatalf("%+v", got)
	}
	if h := l.Health(); h.Degraded {
		t.Errorf("health: %+v", h)
	}
}

func TestOutcomesThatWaitTakeBoundedMemory(t *testing.T) {
	d := &disk{room: -1}
	l := openLog(t, Options{Dir: t.TempDir(), openFile: d.open, MaxResponse: 2 << 20}, &memory{})
	var ids []string
	for range 8 {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	d.set(func(d *disk) { d.room = 0 })
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for _, id := range ids {
		wantCode(t, l.End(id, Outcome{Status: Success, Response: big}), problem.AuditUnavailable)
	}
	size := 0
	for _, d := range l.unwritten {
		size += len(d.body)
	}
	if len(l.unwritten) != len(ids) || size > maxUnwritten+4096 {
		t.Errorf("%d outcomes with %d bytes wait", len(l.unwritten), size)
	}
	d.set(func(d *disk) { d.room = -1 })
}

func TestALostSpoolIsTold(t *testing.T) {
	dir, st := t.TempDir(), &memory{}
	l := openLog(t, Options{Dir: dir}, st)
	call(t, l, "a")
	closeLog(t, l)
	files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	l = openLog(t, Options{Dir: dir}, st)
	b := call(t, l, "b")
	got := list(t, l)
	var told, there bool
	for _, r := range got {
		told = told || r.Type == System && strings.Contains(r.ErrorMessage, "lost or replaced")
		there = there || r.ID == b.ID && r.Status == Success
	}
	if !told || !there || len(got) != 3 {
		t.Fatalf("%+v", got)
	}
}

func TestASpoolThatLostItsEndIsTold(t *testing.T) {
	dir, st := t.TempDir(), &memory{}
	l := openLog(t, Options{Dir: dir}, st)
	for range 5 {
		call(t, l, "a")
	}
	closeLog(t, l)
	files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	if err := os.WriteFile(files[0], []byte(strings.Join(lines[:6], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, Options{Dir: dir}, st)
	for range 10 { // reuses numbers that the store has seen
		call(t, l, "b")
	}
	got := list(t, l)
	n := map[string]int{}
	for _, r := range got {
		n[r.ToolName+string(r.Status)]++
	}
	if n["asuccess"] != 5 || n["bsuccess"] != 10 || n["error"] != 1 {
		t.Fatalf("%v", n)
	}
}

func TestANewDatabaseGetsWhatTheSpoolHas(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir, maxSegment: 5000}, &memory{})
	for range 20 {
		call(t, l, "a")
	}
	closeLog(t, l)
	fresh := &memory{notes: []string{"The database was damaged."}}
	l = openLog(t, Options{Dir: dir, maxSegment: 5000}, fresh)
	got := list(t, l)
	if len(got) != 21 || got[0].Type != System || got[0].ErrorMessage != "The database was damaged." {
		t.Fatalf("%d records, first %+v", len(got), got[0])
	}
}

func TestProjectedSegmentsAreRemoved(t *testing.T) {
	dir, st := t.TempDir(), &memory{}
	opt := Options{Dir: dir, maxSegment: 2000}
	l := openLog(t, opt, st)
	for range 50 {
		call(t, l, "a")
	}
	closeLog(t, l)
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil || len(files) > 1+keepSegments+removeSegments || st.synced == 0 {
		t.Fatalf("%d segments are left, synced %d times, %v", len(files), st.synced, err)
	}
	l = openLog(t, opt, st)
	call(t, l, "b")
	if v, err := l.Verify(t.Context()); err != nil || v.Break != "" {
		t.Fatal(v, err)
	}
	if got := list(t, l); len(got) != 51 {
		t.Fatalf("%d records", len(got))
	}
}

func TestAClosedLogRefuses(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memory{})
	closeLog(t, l)
	wantCode(t, l.Begin(&Record{}), problem.AuditUnavailable)
	wantCode(t, l.Append(&Record{}), problem.AuditUnavailable)
}

func TestGetOfNoID(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memory{})
	for _, id := range []string{"", "x y", "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4Z", "Ü"} {
		_, err := l.Get(t.Context(), id)
		wantCode(t, err, problem.NotFound)
	}
}

func TestAQueryEndsWithItsContext(t *testing.T) {
	st := &blocked{memory: &memory{}, open: make(chan struct{})}
	l := openLog(t, Options{Dir: t.TempDir()}, st)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.List(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(st.open)
	list(t, l)
}

// blocked is a store that opens late.
type blocked struct {
	*memory
	open chan struct{}
}

func (b *blocked) Resume(ctx context.Context) (Position, []string, error) {
	select {
	case <-b.open:
		return b.memory.Resume(ctx)
	case <-ctx.Done():
		return Position{}, nil, ctx.Err()
	}
}

func TestIDsGrowAcrossRestartsAndClockJumps(t *testing.T) {
	dir, st := t.TempDir(), &memory{}
	var clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	last := ""
	for _, jump := range []time.Duration{0, -time.Hour, 365 * 24 * time.Hour, -2 * 365 * 24 * time.Hour, time.Millisecond} {
		clock.Add(int64(jump))
		l := openLog(t, Options{Dir: dir, Now: now}, st)
		for range 3 {
			r := call(t, l, "a")
			if r.ID <= last {
				t.Fatalf("%s came after %s", r.ID, last)
			}
			if !r.Timestamp.Equal(now().Truncate(time.Microsecond)) {
				t.Fatalf("the time is %v, not that of the clock", r.Timestamp)
			}
			last = r.ID
		}
		closeLog(t, l)
	}
}
