package activity

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/problem"
)

// runInBubble runs a test with fake time in a synctest bubble. It closes the log inside the bubble.
func runInBubble(t *testing.T, opt Options, st Store, fn func(t *testing.T, l *Log)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		opt.Dir = dir
		opt.checkEvery = time.Hour // fake hours pass quickly, but the disk is real
		l, err := Open(opt, st)
		if err != nil {
			t.Fatal(err)
		}
		defer closeLog(t, l)
		fn(t, l)
	})
}

func (m *memoryStore) state() (rows, batches int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows), m.batches
}

func TestARecordIsInTheStoreAfterASecond(t *testing.T) {
	st := &memoryStore{}
	runInBubble(t, Options{}, st, func(t *testing.T, l *Log) {
		listRecords(t, l) // wait until the log has started
		_, started := st.state()
		for burst := range 3 {
			for range 10 {
				recordCall(t, l, "a")
				time.Sleep(20 * time.Millisecond)
			}
			if rows, _ := st.state(); rows != 10*burst {
				t.Errorf("burst %d: %d records were stored immediately", burst, rows)
			}
			time.Sleep(maxAge)
			synctest.Wait()
			if rows, _ := st.state(); rows != 10*(burst+1) {
				t.Errorf("burst %d: %d records were stored after a second", burst, rows)
			}
		}
		if _, batches := st.state(); batches != started+3 {
			t.Errorf("got %d transactions for three bursts", batches-started)
		}
	})
}

func TestManyRecordsDoNotWaitForTheSecond(t *testing.T) {
	st := &memoryStore{}
	runInBubble(t, Options{}, st, func(t *testing.T, l *Log) {
		for range MaxBatch { // each record has two entries
			recordCall(t, l, "a")
		}
		synctest.Wait()
		if rows, _ := st.state(); rows < MaxBatch/2 {
			t.Errorf("got %d records", rows)
		}
	})
}

func TestOutcomesAreWrittenWhenTheDiskHasRoomAgain(t *testing.T) {
	d := &faultyDisk{room: -1}
	st := &memoryStore{}
	runInBubble(t, Options{openFile: d.open}, st, func(t *testing.T, l *Log) {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		d.set(func(d *faultyDisk) { d.room = 0 })
		wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
		time.Sleep(time.Minute)
		if !l.Health().Degraded {
			t.Error("Health does not report the full disk")
		}
		d.set(func(d *faultyDisk) { d.room = -1 })
		time.Sleep(2 * retryEnds)
		synctest.Wait()
		if h := l.Health(); h.Degraded {
			t.Errorf("health = %+v", h)
		}
		if got := listRecords(t, l); len(got) != 1 || got[0].Status != Success {
			t.Errorf("%+v", got)
		}
	})
}

// TestOutcomesAreWrittenThoughCallsGoOn checks that further calls do not delay the next attempt to write an outcome.
func TestOutcomesAreWrittenThoughCallsGoOn(t *testing.T) {
	d := &faultyDisk{room: -1}
	runInBubble(t, Options{openFile: d.open}, &memoryStore{}, func(t *testing.T, l *Log) {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		d.set(func(d *faultyDisk) { d.room = 0 })
		wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
		d.set(func(d *faultyDisk) { d.room = -1 })
		for range 10 {
			recordCall(t, l, "a")
			listRecords(t, l)
			time.Sleep(retryEnds / 2)
		}
		if n := l.outcomes.waitingCount(); n != 0 {
			t.Errorf("%d outcomes still wait", n)
		}
	})
}

func TestOutcomesAreWrittenWhileTheStoreIsAway(t *testing.T) {
	d := &faultyDisk{room: -1}
	st := &memoryStore{}
	runInBubble(t, Options{openFile: d.open}, st, func(t *testing.T, l *Log) {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		listRecords(t, l)
		st.setFail(errors.New("away"))
		recordCall(t, l, "a") // the store rejects it
		time.Sleep(time.Minute)
		d.set(func(d *faultyDisk) { d.room = 0 })
		wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
		d.set(func(d *faultyDisk) { d.room = -1 })
		time.Sleep(2 * maxRetryDelay)
		synctest.Wait()
		if n := l.outcomes.waitingCount(); n != 0 {
			t.Errorf("%d outcomes still wait", n)
		}
		st.setFail(nil)
		time.Sleep(maxRetryDelay)
		synctest.Wait()
		if got := listRecords(t, l); len(got) != 2 || got[1].Status != Success {
			t.Errorf("%+v", got)
		}
	})
}

// TestADiskThatIsFullForEverything simulates a full disk that contains both the database and the spool, which is usual.
func TestADiskThatIsFullForEverything(t *testing.T) {
	d := &faultyDisk{room: -1}
	st := &memoryStore{}
	runInBubble(t, Options{openFile: d.open}, st, func(t *testing.T, l *Log) {
		r := Record{Type: ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		d.set(func(d *faultyDisk) { d.room = 0 })
		st.setFail(errors.New("disk full"))
		wantCode(t, l.End(r.ID, Outcome{Status: Success}), problem.AuditUnavailable)
		wantCode(t, l.Begin(&Record{}), problem.AuditUnavailable)
		time.Sleep(time.Minute)
		d.set(func(d *faultyDisk) { d.room = -1 })
		st.setFail(nil)
		time.Sleep(maxRetryDelay + retryEnds + maxAge)
		synctest.Wait()
		if h := l.Health(); h.Degraded || h.Backlog != 0 {
			t.Errorf("health = %+v", h)
		}
		if got := listRecords(t, l); len(got) != 1 || got[0].Status != Success {
			t.Errorf("%+v", got)
		}
	})
}

func TestRecoveredStoreGetsPendingRecords(t *testing.T) {
	st := &memoryStore{}
	runInBubble(t, Options{}, st, func(t *testing.T, l *Log) {
		recordCall(t, l, "a")
		listRecords(t, l)
		st.setFail(errors.New("away"))
		for range 5 {
			recordCall(t, l, "b")
			time.Sleep(10 * time.Second)
		}
		if h := l.Health(); !h.Degraded || h.Backlog != 10 {
			t.Errorf("health = %+v", h)
		}
		_, err := l.List(t.Context(), Filter{})
		wantCode(t, err, problem.AuditUnavailable)
		st.setFail(nil)
		time.Sleep(maxRetryDelay + time.Millisecond)
		synctest.Wait()
		if got := listRecords(t, l); len(got) != 6 {
			t.Errorf("got %d records, want 6", len(got))
		}
	})
}

// TestAnIdleLogSleeps checks that the store is rarely used in an hour without calls.
func TestAnIdleLogSleeps(t *testing.T) {
	st := &tidyCountingStore{memoryStore: &memoryStore{}}
	runInBubble(t, Options{}, st, func(t *testing.T, l *Log) {
		recordCall(t, l, "a")
		listRecords(t, l)
		_, before := st.state()
		time.Sleep(time.Hour)
		synctest.Wait()
		if st.tidies > 65 || st.tidies < 50 {
			t.Errorf("Tidy was called %d times in an hour", st.tidies)
		}
		if _, batches := st.state(); before == 0 || batches != before {
			t.Errorf("got %d transactions before the hour and %d after it", before, batches)
		}
	})
}

// TestRetentionIsAskedEveryTime checks that a change of the limits takes effect while the log is open.
func TestRetentionIsAskedEveryTime(t *testing.T) {
	st := &tidyCountingStore{memoryStore: &memoryStore{}}
	var keep atomic.Pointer[Retention]
	keep.Store(&Retention{})
	runInBubble(t, Options{Retention: func() Retention { return *keep.Load() }}, st, func(t *testing.T, l *Log) {
		for _, want := range []Retention{{MaxRecords: 7}, {MaxRecords: 8, MaxBytes: 9}, {}} {
			keep.Store(&want)
			time.Sleep(2 * tidyEvery)
			synctest.Wait()
			if got := st.asked(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}

// TestNoAgeRetentionAfterClockChange sets the clock forward and back. After each change, the age limit must not apply
// until the clock has been steady for an hour. The other limits must always apply.
func TestNoAgeRetentionAfterClockChange(t *testing.T) {
	st := &tidyCountingStore{memoryStore: &memoryStore{}}
	var ahead atomic.Int64
	opt := Options{
		Retention: func() Retention { return Retention{Days: 90, MaxRecords: 5} },
		Now:       func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	runInBubble(t, opt, st, func(t *testing.T, l *Log) {
		want := func(days int) {
			t.Helper()
			synctest.Wait()
			if got := st.asked(); got != (Retention{Days: days, MaxRecords: 5}) {
				t.Errorf("retention = %+v, want %d days", got, days)
			}
		}
		time.Sleep(clockSteady / 2)
		want(0) // the log has just started
		time.Sleep(clockSteady)
		want(90)
		time.Sleep(100 * time.Hour)
		want(90)
		for _, set := range []time.Duration{10 * 365 * 24 * time.Hour, -time.Hour, 2 * time.Minute} {
			ahead.Add(int64(set))
			time.Sleep(clockSteady - tidyEvery)
			want(0)
			time.Sleep(2*tidyEvery + time.Minute)
			want(90)
		}
	})
}

func (c *tidyCountingStore) asked() Retention {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keep
}

type tidyCountingStore struct {
	*memoryStore
	tidies int
	keep   Retention
}

func (c *tidyCountingStore) Tidy(ctx context.Context, now time.Time, keep Retention, idle bool) (bool, error) {
	c.mu.Lock()
	c.tidies++
	c.keep = keep
	c.mu.Unlock()
	return c.memoryStore.Tidy(ctx, now, keep, idle)
}
