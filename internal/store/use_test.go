package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/activitytest"
	"mcpproxy/internal/testutil/volume"
)

// TestUseAgreesWithTheRecords checks that the usage of servers and tools matches their records, whether it was read
// before or after they were written, and after a restart.
func TestUseAgreesWithTheRecords(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	clock := activitytest.NewClock(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC))
	var db *SQLite
	var l *activity.Log
	open := func() {
		db = OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
		var err error
		if l, err = activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: clock.Now}, db); err != nil {
			t.Fatal(err)
		}
	}
	down := func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	open()
	defer func() { down() }()
	type call struct {
		server string
		at     time.Time
		failed bool
		ms     int64
	}
	var calls []call
	tools := map[[2]string]activity.ToolUsage{}
	for round := range 30 {
		for range rng.IntN(40) {
			c := call{server: fmt.Sprint("s", rng.IntN(3)), at: clock.Now(), failed: rng.IntN(4) == 0, ms: int64(rng.ExpFloat64() * 300)}
			id := [2]string{c.server, fmt.Sprint("t", rng.IntN(5))}
			r := activity.Record{Type: activity.ToolCall, ServerName: id[0], ToolName: id[1]}
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			status := activity.Success
			if c.failed {
				status = activity.Failed
			}
			began := clock.Now()
			clock.Advance(time.Duration(c.ms) * time.Millisecond)
			if err := l.End(r.ID, activity.Outcome{Status: status, Duration: clock.Now().Sub(began)}); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
			tools[id] = activity.ToolUsage{Calls: tools[id].Calls + 1, Last: began}
			if err := l.Append(&activity.Record{Type: activity.ServerChange, ServerName: id[0], ToolName: id[1]}); err != nil {
				t.Fatal(err)
			}
		}
		if round%10 == 5 {
			down()
			open()
		}
		if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil { // waits until all entries are stored
			t.Fatal(err)
		}
		use, err := l.ToolUse(t.Context())
		if err != nil || len(use) != len(tools) {
			t.Fatalf("ToolUse gave %v, %v, want %v", use, err, tools)
		}
		for id, want := range tools {
			if got := use[id]; got.Calls != want.Calls || got.Last.Sub(want.Last).Abs() > time.Millisecond {
				t.Fatalf("%v: %v, want %v", id, got, want)
			}
		}
		servers, err := l.ServerUse(t.Context(), clock.Now(), 24)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range []string{"s0", "s1", "s2"} {
			want := make([]activity.HourlyCalls, 24)
			var durations []int64
			for _, c := range calls {
				ago := clock.Now().Truncate(time.Hour).Sub(c.at.Truncate(time.Hour)) / time.Hour
				if c.server != server || ago > 23 {
					continue
				}
				want[23-ago].Calls++
				if c.failed {
					want[23-ago].Errors++
				}
				durations = append(durations, c.ms)
			}
			got := servers[server]
			if len(durations) == 0 {
				if got.Hours != nil {
					t.Fatalf("%s: got %v without any calls", server, got)
				}
				continue
			}
			slices.Sort(durations)
			p95 := durations[len(durations)-1-len(durations)/20]
			if !slices.Equal(got.Hours, want) {
				t.Fatalf("%s: %v, want %v", server, got.Hours, want)
			}
			if ms := got.P95.Milliseconds(); ms < p95*96/100 || ms > p95*104/100+1 {
				t.Fatalf("%s: the 95th percentile is %d ms, want about %d of %v", server, ms, p95, durations)
			}
		}
		clock.Advance(time.Duration(rng.IntN(200)) * time.Minute)
	}
	if _, err := l.ToolUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	tidyAll(t, db, clock.Now(), activity.Retention{MaxRecords: 1})
	use, err := l.ToolUse(t.Context())
	e, _ := db.waitOpen(t.Context())
	if took := e.countRows(t, "SELECT count(DISTINCT hour) FROM activity_took"); err != nil || len(use) > 15 || took > 1 {
		t.Errorf("for the remaining records: %v, %v, %d hours", use, err, took)
	}
	total := int64(0)
	for _, u := range use {
		total += u.Calls
	}
	if total >= int64(len(calls)) {
		t.Errorf("%d of %d calls are counted although their records were pruned", total, len(calls))
	}
}

// TestBucketsOfDurations checks that each bucket contains its midpoint, and that the buckets are in order.
func TestBucketsOfDurations(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	last := int64(-1)
	for d := int64(0); d < 1<<22; d += 1 + d/1000 {
		b := bucketOfDuration(d)
		if b < last || b > last+1 || (d >= fineBuckets && (bucketMidpoint(b) > d+d/20 || bucketMidpoint(b) < d-d/20)) || d < fineBuckets && bucketMidpoint(b) != d {
			t.Fatalf("%d ms is in bucket %d after bucket %d, with the midpoint %d", d, b, last, bucketMidpoint(b))
		}
		last = b
	}
}

// BenchmarkToolUse measures the query for each page of the tools list.
func BenchmarkToolUse(b *testing.B) {
	l, _ := openBench(b)
	for i := range 10_000 {
		r := activity.Record{Type: activity.ToolCall, Status: activity.Success, ServerName: fmt.Sprint("s", i%100), ToolName: fmt.Sprint("t", i)}
		if err := l.Append(&r); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if use, err := l.ToolUse(b.Context()); err != nil || len(use) != 10_000 {
			b.Fatal(len(use), err)
		}
	}
}
