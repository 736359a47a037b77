package activity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// appendRefusal records a refused call of an agent.
func appendRefusal(t *testing.T, l *Log, change func(*Record)) Record {
	t.Helper()
	r := Record{Actor: "agent", Source: SourceMCP, ServerName: "notes", ToolName: "read", SessionID: "s",
		Arguments: []byte(`{"n":1}`), ErrorMessage: "Tool 'notes:read' is locked.", Origin: "127.0.0.1:1000",
		Metadata: Metadata{ErrorCode: "TOOL_LOCKED", ToolVariant: "call_tool_read", Intent: &Intent{OperationType: "read"}}}
	if change != nil {
		change(&r)
	}
	if err := l.AppendRefusal(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestIdenticalRefusalsAreOneRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, Options{Dir: t.TempDir(), checkEvery: time.Hour}, &memoryStore{})
		first := appendRefusal(t, l, nil)
		time.Sleep(time.Minute)
		for i := range 99 {
			time.Sleep(time.Second)
			again := appendRefusal(t, l, func(r *Record) {
				r.RequestID, r.Arguments = fmt.Sprint(i), fmt.Appendf(nil, `{"n":%d}`, i)
				r.Metadata.Intent.Reason = fmt.Sprint("because ", i)
			})
			if again.ID != first.ID {
				t.Fatalf("refusal %d has the ID %s, want the ID of the first, %s", i, again.ID, first.ID)
			}
		}
		for what, change := range map[string]func(*Record){
			"actor": func(r *Record) { r.Actor = "agent:ci" }, "session": func(r *Record) { r.SessionID = "s2" },
			"tool": func(r *Record) { r.ToolName = "write" }, "code": func(r *Record) { r.Metadata.ErrorCode = "OUT_OF_SCOPE" },
			"variant": func(r *Record) { r.Metadata.ToolVariant = "call_tool_write" },
			"intent":  func(r *Record) { r.Metadata.Intent.OperationType = "write" },
			"message": func(r *Record) { r.ErrorMessage += "!" }, "client": func(r *Record) { r.ClientName = "other" },
		} {
			if r := appendRefusal(t, l, change); r.ID == first.ID {
				t.Errorf("a refusal with another %s has the same record", what)
			}
		}
		records := listRecords(t, l)
		if len(records) != 9 {
			t.Fatalf("got %d records, want 9", len(records))
		}
		got := records[8]
		if got.Repeated != 100 || got.FirstTime == nil || !got.FirstTime.Equal(got.Timestamp) ||
			got.LastTime == nil || got.LastTime.Sub(got.Timestamp) != 159*time.Second || got.Status != Blocked || got.Type != PolicyDecision {
			t.Errorf("%+v", got)
		}
		if records[0].Repeated != 0 || records[0].LastTime != nil {
			t.Errorf("record of a refusal without repetitions: %+v", records[0])
		}
	})
}

// TestVariedRefusalsDoNotFillTheLog repeats an attack that displaced calls from the log in the past: a client varies
// everything that it can choose.
func TestVariedRefusalsDoNotFillTheLog(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir}, &memoryStore{})
	const calls, clients = 20_000, 16
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range calls / clients {
				appendRefusal(t, l, func(r *Record) {
					tail := fmt.Sprint(c, "-", i)
					r.Origin, r.SessionID, r.RequestID = "conn"+tail, "session"+tail, tail
					r.ClientName, r.ToolName, r.ServerName = strings.Repeat("c", 200)+tail, strings.Repeat("t", 200)+tail, "s"+tail
					r.ErrorMessage = strings.Repeat("m", 8<<10) + tail
					r.Arguments = []byte(`{"x":"` + strings.Repeat("a", 10<<10) + tail + `"}`)
					r.Metadata.Intent.Reason = strings.Repeat("r", 8<<10) + tail
				})
			}
		})
	}
	wg.Wait()
	records := listRecords(t, l)
	if len(records) > maxRefusals+2 {
		t.Errorf("got %d records", len(records))
	}
	if size := l.Health().Spool; size > 4<<20 {
		t.Errorf("the spool has %d bytes", size)
	}
	var times int64
	flood, others := false, ""
	for _, r := range records {
		if r.Type == PolicyDecision {
			times += max(1, r.Repeated)
		}
		flood = flood || r.Type == System && r.Metadata.Action == "refusals_flood"
		if r.Metadata.Action == "further_refusals" {
			others = r.ErrorMessage
		}
	}
	if times != calls {
		t.Errorf("the records count %d refusals", times)
	}
	want := fmt.Sprintf("%d further refusals, of more than %d different tools", calls-maxRefusals, maxNames)
	if !strings.HasPrefix(others, want) || !flood || len(l.Health().Refused) != 1 || l.Health().Degraded {
		t.Errorf("further refusals = %q, want %s; flood recorded = %t; health = %+v", others, want, flood, l.Health())
	}
	admin := appendRefusal(t, l, func(r *Record) { r.Actor = "admin" })
	if got := listRecords(t, l)[0]; got.ID != admin.ID || got.Repeated != 0 {
		t.Errorf("the refusal of another actor has no separate record: %+v", got)
	}
}

func TestOneConnectionLeavesRoomForOthers(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	for i := range 2 * maxRefusals {
		appendRefusal(t, l, func(r *Record) { r.ToolName = fmt.Sprint(i) })
	}
	other := appendRefusal(t, l, func(r *Record) { r.ToolName, r.Origin = "mine", "127.0.0.1:2000" })
	records := listRecords(t, l)
	if records[0].ID != other.ID || records[0].ToolName != "mine" || len(records) != maxRefusalsOfOrigin+3 {
		t.Errorf("got %d records, the last is %+v", len(records), records[0])
	}
}

// TestCountsOutliveTheProcess copies a log before and after its counts are due, which simulates a kill, and opens the
// copies.
func TestCountsOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, Options{Dir: filepath.Join(dir, "a"), checkEvery: time.Hour}, &memoryStore{})
		for range 10 {
			appendRefusal(t, l, nil)
		}
		copyAt := func(name string) []Record {
			t.Helper()
			synctest.Wait()
			if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, "a"))); err != nil {
				t.Fatal(err)
			}
			l := openLog(t, Options{Dir: filepath.Join(dir, name), checkEvery: time.Hour}, &memoryStore{})
			if v := readAndVerify(t, l.spool); v.Break != "" {
				t.Errorf("%s: %+v", name, v)
			}
			return listRecords(t, l)
		}
		if got := copyAt("early"); len(got) != 1 || got[0].Repeated != 0 || got[0].Status != Blocked {
			t.Errorf("before the first count was written: %+v", got)
		}
		time.Sleep(firstCountDelay + time.Second)
		if got := copyAt("late"); len(got) != 1 || got[0].Repeated != 10 {
			t.Errorf("after the first count was written: %+v", got)
		}
		appendRefusal(t, l, nil)
		time.Sleep(2*firstCountDelay + time.Second)
		if got := copyAt("later"); len(got) != 1 || got[0].Repeated != 11 {
			t.Errorf("after the second count was written: %+v", got)
		}
		before := l.spool.lastDurableSeq()
		time.Sleep(24 * time.Hour)
		if after := l.spool.lastDurableSeq(); after != before {
			t.Errorf("%d entries were written while there were no calls", after-before)
		}
		if got := appendRefusal(t, l, nil); listRecords(t, l)[0].ID != got.ID || len(listRecords(t, l)) != 2 {
			t.Error("a refusal one day later has no separate record")
		}
	})
}

func TestCountsAreWrittenAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Options{Dir: dir}, &memoryStore{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		appendRefusal(t, l, nil)
	}
	closeLog(t, l)
	l = openLog(t, Options{Dir: dir}, &memoryStore{})
	if got := listRecords(t, l); len(got) != 1 || got[0].Repeated != 5 {
		t.Errorf("%+v", got)
	}
}

// TestARefusalLoopWritesLittle repeats the same refusal for a day, and checks that few entries are written.
func TestARefusalLoopWritesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, Options{Dir: t.TempDir(), checkEvery: time.Hour}, &memoryStore{})
		for range 24 * 60 * 6 {
			appendRefusal(t, l, nil)
			time.Sleep(10 * time.Second)
		}
		if n := l.spool.lastDurableSeq(); n > 24*15 {
			t.Errorf("got %d entries", n)
		}
	})
}
