package activity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/activitytest"
)

func TestRunningCallsBecomeInterrupted(t *testing.T) {
	for _, projected := range []bool{false, true} {
		t.Run(fmt.Sprintf("projected=%v", projected), func(t *testing.T) {
			dir, st := t.TempDir(), &memoryStore{}
			l, err := Open(Options{Dir: dir}, st)
			if err != nil {
				t.Fatal(err)
			}
			done := recordCall(t, l, "done")
			r := Record{Type: ToolCall, ToolName: "running", Metadata: Metadata{Intent: &Intent{OperationType: "read"}}}
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			if projected {
				listRecords(t, l)
			}
			stopWithoutClosing(t, l)
			l = openLog(t, Options{Dir: dir}, st)
			now := Record{Type: ToolCall, ToolName: "now"}
			if err := l.Begin(&now); err != nil {
				t.Fatal(err)
			}
			got := listRecords(t, l)
			status := map[string]Status{}
			for _, r := range got {
				status[r.ID] = r.Status
			}
			if status[done.ID] != Success || status[r.ID] != Interrupted || status[now.ID] != Pending || len(got) != 3 {
				t.Fatalf("%+v", got)
			}
			if v := readAndVerify(t, l.spool); v.Break != "" {
				t.Fatal(v)
			}
		})
	}
}

// stopWithoutClosing stops a log as the death of its process would: pending work is not finished.
func stopWithoutClosing(t *testing.T, l *Log) {
	t.Helper()
	l.stop()
	<-l.progress.ended
	l.watching.Wait()
	if err := l.spool.close(true); err != nil {
		t.Fatal(err)
	}
}

// TestTheStoreGetsEverythingOnce restarts the log several times, with a store that fails sometimes and a small memory
// limit.
func TestTheStoreGetsEverythingOnce(t *testing.T) {
	dir, st := t.TempDir(), &memoryStore{}
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
					r := recordCall(t, l, "x")
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
			stopWithoutClosing(t, l)
			continue
		}
		waitForStore(t, l)
		closeLog(t, l)
	}
	l := openLog(t, Options{Dir: dir}, st)
	var got []string
	for _, r := range listRecords(t, l) {
		if r.Status != Success {
			t.Fatalf("%+v", r)
		}
		got = append(got, r.ID)
	}
	slices.Sort(want)
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Fatalf("the store has %d records, want %d", len(got), len(want))
	}
	if n := len(l.spool.snapshot().segments); n > 1+spareSegments+removeSegments {
		t.Errorf("%d segments remain", n)
	}
}

// waitForStore lists records until the store is available again.
func waitForStore(t *testing.T, l *Log) {
	t.Helper()
	for {
		_, err := l.List(t.Context(), Filter{})
		if err == nil {
			return
		}
		wantCode(t, err, problem.AuditUnavailable)
		l.progress.mu.Lock()
		if l.progress.changed == nil {
			l.progress.changed = make(chan struct{})
		}
		progress, failing := l.progress.changed, l.progress.err != nil
		l.progress.mu.Unlock()
		if !failing {
			continue
		}
		select {
		case <-progress:
		case <-t.Context().Done():
			t.Fatal("the store did not become available again")
		}
	}
}

func TestLostSpoolIsReported(t *testing.T) {
	dir, st := t.TempDir(), &memoryStore{}
	l := openLog(t, Options{Dir: dir}, st)
	recordCall(t, l, "a")
	closeLog(t, l)
	files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	l = openLog(t, Options{Dir: dir}, st)
	b := recordCall(t, l, "b")
	got := listRecords(t, l)
	var told, there bool
	for _, r := range got {
		told = told || r.Type == System && strings.Contains(r.ErrorMessage, "lost or replaced")
		there = there || r.ID == b.ID && r.Status == Success
	}
	if !told || !there || len(got) != 3 {
		t.Fatalf("%+v", got)
	}
}

func TestTruncatedSpoolIsReported(t *testing.T) {
	dir, st := t.TempDir(), &memoryStore{}
	l := openLog(t, Options{Dir: dir}, st)
	for range 5 {
		recordCall(t, l, "a")
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
	for range 10 { // reuses sequence numbers that the store has received before
		recordCall(t, l, "b")
	}
	got := listRecords(t, l)
	n := map[string]int{}
	for _, r := range got {
		n[r.ToolName+string(r.Status)]++
	}
	if n["asuccess"] != 5 || n["bsuccess"] != 10 || n["error"] != 1 {
		t.Fatalf("%v", n)
	}
}

func TestNewDatabaseGetsTheSpooledRecords(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir, maxSegment: 5000}, &memoryStore{})
	for range 20 {
		recordCall(t, l, "a")
	}
	closeLog(t, l)
	fresh := &memoryStore{notes: []string{"The database was damaged."}}
	l = openLog(t, Options{Dir: dir, maxSegment: 5000}, fresh)
	got := listRecords(t, l)
	if len(got) != 21 || got[0].Type != System || got[0].ErrorMessage != "The database was damaged." {
		t.Fatalf("got %d records, the first is %+v", len(got), got[0])
	}
}

func TestProjectedSegmentsAreRemoved(t *testing.T) {
	dir, st := t.TempDir(), &memoryStore{}
	opt := Options{Dir: dir, maxSegment: 2000}
	l := openLog(t, opt, st)
	for range 50 {
		recordCall(t, l, "a")
	}
	closeLog(t, l)
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil || len(files) > 1+spareSegments+removeSegments || st.synced == 0 {
		t.Fatalf("%d segments remain, synced %d times, %v", len(files), st.synced, err)
	}
	l = openLog(t, opt, st)
	recordCall(t, l, "b")
	if v := readAndVerify(t, l.spool); v.Break != "" {
		t.Fatal(v)
	}
	if got := listRecords(t, l); len(got) != 51 {
		t.Fatalf("got %d records, want 51", len(got))
	}
}

func TestIDsGrowAcrossRestartsAndClockJumps(t *testing.T) {
	dir, st := t.TempDir(), &memoryStore{}
	clock := activitytest.NewClock(time.Now())
	last := ""
	for _, jump := range []time.Duration{0, -time.Hour, 365 * 24 * time.Hour, -2 * 365 * 24 * time.Hour, time.Millisecond} {
		clock.Advance(jump)
		l := openLog(t, Options{Dir: dir, Now: clock.Now}, st)
		for range 3 {
			r := recordCall(t, l, "a")
			if r.ID <= last {
				t.Fatalf("ID %s was assigned after %s", r.ID, last)
			}
			if !r.Timestamp.Equal(clock.Now().Truncate(time.Microsecond)) {
				t.Fatalf("the time is %v, which is not the time of the clock", r.Timestamp)
			}
			last = r.ID
		}
		closeLog(t, l)
	}
}
