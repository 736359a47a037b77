package store

import (
	"context"
	"maps"
	"time"

	"mcpproxy/internal/store/activity"
)

// ToolUse returns how often each tool was called, for all records in the log.
func (db *SQLite) ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	used := maps.Clone(e.toolUse)
	e.mu.RUnlock()
	if used != nil {
		return used, nil
	}
	// Count while no transaction is running. After that, the projector keeps e.toolUse current.
	e.writing.Lock()
	defer e.writing.Unlock()
	if used, err = readToolUse(ctx, sqliteReader{e.reads}); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.toolUse = maps.Clone(used)
	return used, nil
}

// ToolUse returns how often each tool was called, for all records in the log.
func (db *Postgres) ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error) {
	return viewed(ctx, db, readToolUse)
}

func readToolUse(ctx context.Context, r sqlReader) (map[[2]string]activity.ToolUsage, error) {
	used := toolUseCounts{}
	var k hourlyGroupKey
	var records, last int64
	return used, r.eachRow(ctx, scanTargets{&k.hour, &k.server, &k.tool, &records, &last}, func() error {
		k.kind = string(activity.ToolCall)
		used.addHour(k, records, last)
		return nil
	}, "SELECT max(hour), server, tool, sum(records){::bigint}, max(last) FROM activity_hour WHERE type = ? GROUP BY server, tool", string(activity.ToolCall))
}

// CallsByServer returns the number of calls of each server that ended since a time, rounded down to the hour.
func (s *commonStore) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	return viewed(ctx, s.db, func(ctx context.Context, r sqlReader) (map[string]int64, error) {
		calls := map[string]int64{}
		var server string
		var n int64
		return calls, r.eachRow(ctx, scanTargets{&server, &n}, func() error { calls[server] = n; return nil },
			"SELECT server, sum(records){::bigint} FROM activity_hour WHERE hour >= ? AND type = ? GROUP BY server", hourOfMicros(since.UnixMicro()), string(activity.ToolCall))
	})
}

// ServerUse returns the usage of each server in the latest hours, including the current hour.
func (s *commonStore) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUsage, error) {
	u := newServerUseCounter(now, latest)
	err := s.db.view(ctx, func(ctx context.Context, r sqlReader) error {
		var server, status string
		var at, n int64
		if err := r.eachRow(ctx, scanTargets{&server, &at, &status, &n}, func() error { u.addCalls(server, at, status, n); return nil },
			"SELECT server, hour, status, sum(records){::bigint} FROM activity_hour WHERE hour >= ? AND type = ? GROUP BY server, hour, status",
			u.first, string(activity.ToolCall)); err != nil {
			return err
		}
		return r.eachRow(ctx, scanTargets{&server, &at, &n}, func() error { u.addDurationBucket(server, at, n); return nil },
			"SELECT server, bucket, sum(records){::bigint} FROM activity_took WHERE hour >= ? GROUP BY server, bucket ORDER BY server, bucket DESC", u.first)
	})
	return u.all, err
}

// serverUseCounter counts the calls of servers by hour and duration.
type serverUseCounter struct {
	first, latest int64 // the first hour, and the number of hours
	all           map[string]activity.ServerUsage
	slower        map[string]int64 // calls of each server in the current duration bucket and in longer ones
}

func newServerUseCounter(now time.Time, latest int) *serverUseCounter {
	return &serverUseCounter{hourOfMicros(now.UnixMicro()) - int64(latest) + 1, int64(latest), map[string]activity.ServerUsage{}, map[string]int64{}}
}

// addCalls counts calls of one hour.
func (s *serverUseCounter) addCalls(server string, at int64, status string, n int64) {
	if at -= s.first; at >= s.latest { // possible if the clock was set back
		return
	}
	u := s.all[server]
	if u.Hours == nil {
		u.Hours = make([]activity.HourlyCalls, s.latest)
	}
	u.Hours[at].Calls += n
	if status == string(activity.Failed) {
		u.Hours[at].Errors += n
	}
	s.all[server] = u
}

// addDurationBucket counts the calls in a bucket of durations. Buckets must be added from the longest to the shortest.
func (s *serverUseCounter) addDurationBucket(server string, bucket, n int64) {
	u, there := s.all[server]
	if s.slower[server] += n; !there || u.P95 != 0 {
		return
	}
	total := int64(0)
	for _, h := range u.Hours {
		total += h.Calls
	}
	if s.slower[server]*20 > total { // more than one in twenty calls took at least this long
		u.P95 = time.Duration(bucketMidpoint(bucket)) * time.Millisecond
		s.all[server] = u
	}
}
