package store

import (
	"context"
	"maps"
	"time"

	"mcpproxy/internal/store/activity"
)

// ToolUse returns how often each tool was called, as far back as the log goes.
func (db *DB) ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	used := maps.Clone(e.used)
	e.mu.RUnlock()
	if used != nil {
		return used, nil
	}
	// From now on it is kept.
	e.writing.Lock()
	defer e.writing.Unlock()
	used = toolUse{}
	var k hour
	var records, last int64
	err = each(ctx, e.reads, into{&k.hour, &k.server, &k.tool, &records, &last}, func() error {
		k.kind = string(activity.ToolCall)
		used.add(k, records, last)
		return nil
	}, "SELECT max(hour), server, tool, sum(records), max(last) FROM activity_hour WHERE type = ? GROUP BY server, tool", activity.ToolCall)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used = maps.Clone(used)
	return used, nil
}

// CallsByServer returns how many calls of each server have ended since a time, by the hour.
func (db *DB) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	calls := map[string]int64{}
	var server string
	var n int64
	err = each(ctx, e.reads, into{&server, &n}, func() error { calls[server] = n; return nil },
		"SELECT server, sum(records) FROM activity_hour WHERE hour >= ? AND type = ? GROUP BY server", hourOf(since.UnixMicro()), activity.ToolCall)
	return calls, err
}

// ServerUse returns how each server was called in the latest hours, the present one
// included.
func (db *DB) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUsage, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	u := newServerUses(now, latest)
	var server, status string
	var at, n int64
	err = each(ctx, e.reads, into{&server, &at, &status, &n}, func() error { u.calls(server, at, status, n); return nil },
		"SELECT server, hour, status, sum(records) FROM activity_hour WHERE hour >= ? AND type = ? GROUP BY server, hour, status",
		u.first, activity.ToolCall)
	if err != nil {
		return nil, err
	}
	err = each(ctx, e.reads, into{&server, &at, &n}, func() error { u.took(server, at, n); return nil },
		"SELECT server, bucket, sum(records) FROM activity_took WHERE hour >= ? GROUP BY server, bucket ORDER BY server, bucket DESC", u.first)
	return u.all, err
}

// serverUses is how servers were called, as it comes about.
type serverUses struct {
	first, latest int64 // the first hour, and how many there are
	all           map[string]activity.ServerUsage
	below         map[string]int64 // of each server, the calls that took longer than what was looked at
}

func newServerUses(now time.Time, latest int) *serverUses {
	return &serverUses{hourOf(now.UnixMicro()) - int64(latest) + 1, int64(latest), map[string]activity.ServerUsage{}, map[string]int64{}}
}

// calls counts calls of an hour.
func (s *serverUses) calls(server string, at int64, status string, n int64) {
	if at -= s.first; at >= s.latest { // the clock was put back
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

// took counts calls by how long they took, the longest first.
func (s *serverUses) took(server string, bucket, n int64) {
	u, there := s.all[server]
	if s.below[server] += n; !there || u.P95 != 0 {
		return
	}
	total := int64(0)
	for _, h := range u.Hours {
		total += h.Calls
	}
	if s.below[server]*20 > total { // more than one in twenty took at least so long
		u.P95 = time.Duration(middle(bucket)) * time.Millisecond
		s.all[server] = u
	}
}
