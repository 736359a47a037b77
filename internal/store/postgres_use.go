package store

import (
	"context"
	"time"

	"mcpproxy/internal/store/activity"
)

// CallsByServer returns how many calls of each server have ended since the hour of a time.
func (db *Postgres) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	calls := map[string]int64{}
	err := db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server string
		var n int64
		return c.eachRow(ctx, scanTargets{&server, &n}, func() error { calls[server] = n; return nil },
			"SELECT server, sum(records)::bigint FROM activity_hour WHERE hour >= $1 AND type = $2 GROUP BY server", hourOfMicros(since.UnixMicro()), string(activity.ToolCall))
	})
	return calls, err
}

// ServerUse returns how each server was called in the latest hours, including the current one.
func (db *Postgres) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUsage, error) {
	u := newServerUseCounter(now, latest)
	err := db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server, status string
		var at, n int64
		if err := c.eachRow(ctx, scanTargets{&server, &at, &status, &n}, func() error { u.addCalls(server, at, status, n); return nil },
			"SELECT server, hour, status, sum(records)::bigint FROM activity_hour WHERE hour >= $1 AND type = $2 GROUP BY server, hour, status",
			u.first, string(activity.ToolCall)); err != nil {
			return err
		}
		return c.eachRow(ctx, scanTargets{&server, &at, &n}, func() error { u.addDurationBucket(server, at, n); return nil },
			"SELECT server, bucket, sum(records)::bigint FROM activity_took WHERE hour >= $1 GROUP BY server, bucket ORDER BY server, bucket DESC", u.first)
	})
	return u.all, err
}

// ToolUse returns how often each tool was called, as far back as the log goes.
func (db *Postgres) ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error) {
	used := toolUseCounts{}
	err := db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var k hourlyGroupKey
		var records, last int64
		return c.eachRow(ctx, scanTargets{&k.hour, &k.server, &k.tool, &records, &last}, func() error {
			k.kind = string(activity.ToolCall)
			used.addHour(k, records, last)
			return nil
		}, "SELECT max(hour), server, tool, sum(records)::bigint, max(last) FROM activity_hour WHERE type = $1 GROUP BY server, tool", string(activity.ToolCall))
	})
	return used, err
}
