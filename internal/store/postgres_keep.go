package store

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/store/activity"
)

// SaveTools keeps the definitions that server listed last, instead of those before.
func (db *Postgres) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	return db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		if _, err := c.exec(ctx, "DELETE FROM tool WHERE server = $1", server); err != nil {
			return err
		}
		b := pgBatch{conn: c}
		for i, raw := range raws { // another instance may do the same at this time
			b.do(ctx, `INSERT INTO tool (server, position, definition) VALUES ($1, $2, $3)
				ON CONFLICT (server, position) DO UPDATE SET definition = excluded.definition`, server, int64(i), []byte(raw))
		}
		return b.run(ctx)
	})
}

// LoadTools returns the last known definitions of every server.
func (db *Postgres) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	tools := map[string][]json.RawMessage{}
	err := db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server string
		var raw []byte
		return c.each(ctx, into{&server, &raw}, func() error {
			tools[server] = append(tools[server], raw)
			return nil
		}, "SELECT server, definition FROM tool ORDER BY server, position")
	})
	return tools, err
}

// ForgetTools removes the definitions of server.
func (db *Postgres) ForgetTools(ctx context.Context, server string) error {
	return db.SaveTools(ctx, server, nil)
}

// PutResult keeps a result until it expires, or needs the room of newer ones.
func (db *Postgres) PutResult(ctx context.Context, r StoredResult) error {
	id, body, err := r.seal()
	if err != nil {
		return err
	}
	jumped, now := db.clock.jumped(), db.clock.evenly()
	return db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		b.do(ctx, "DELETE FROM result WHERE expires <= $1 OR handle = $2", now.UnixMicro(), id)
		b.do(ctx, `DELETE FROM result WHERE number IN (SELECT number FROM (
				SELECT number, sum(octet_length(body)) OVER (ORDER BY number DESC) AS newer FROM result) AS r WHERE newer > $1)`, int64(maxResults-len(body)))
		b.do(ctx, "INSERT INTO result (handle, actor, server, tool, expires, body) VALUES ($1, $2, $3, $4, $5, $6)",
			id, pgClean(r.Actor), pgClean(r.Server), pgClean(r.Tool), r.Expires.Add(-jumped).UnixMicro(), body)
		return b.run(ctx)
	})
}

// GetResult returns a stored result. One that is not there, or no longer, is a NOT_FOUND
// problem.
func (db *Postgres) GetResult(ctx context.Context, handle string) (StoredResult, error) {
	r := StoredResult{Handle: handle}
	var body []byte
	var expires int64
	err := db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		found, err := c.first(ctx, into{&r.Actor, &r.Server, &r.Tool, &expires, &body}, "SELECT actor, server, tool, expires, body FROM result WHERE handle = $1", resultID(handle))
		if err == nil && (!found || expires <= db.clock.evenly().UnixMicro()) {
			return noResult()
		}
		return err
	})
	if err != nil {
		return StoredResult{}, err
	}
	r.Expires = time.UnixMicro(expires)
	return r, r.open(body)
}

// CallsByServer returns how many calls of each server have ended since a time, by the hour.
func (db *Postgres) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	calls := map[string]int64{}
	err := db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server string
		var n int64
		return c.each(ctx, into{&server, &n}, func() error { calls[server] = n; return nil },
			"SELECT server, sum(records)::bigint FROM activity_hour WHERE hour >= $1 AND type = $2 GROUP BY server", hourOf(since.UnixMicro()), string(activity.ToolCall))
	})
	return calls, err
}

// ServerUse returns how each server was called in the latest hours, the present one
// included.
func (db *Postgres) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUsage, error) {
	u := newServerUses(now, latest)
	err := db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server, status string
		var at, n int64
		if err := c.each(ctx, into{&server, &at, &status, &n}, func() error { u.calls(server, at, status, n); return nil },
			"SELECT server, hour, status, sum(records)::bigint FROM activity_hour WHERE hour >= $1 AND type = $2 GROUP BY server, hour, status",
			u.first, string(activity.ToolCall)); err != nil {
			return err
		}
		return c.each(ctx, into{&server, &at, &n}, func() error { u.took(server, at, n); return nil },
			"SELECT server, bucket, sum(records)::bigint FROM activity_took WHERE hour >= $1 GROUP BY server, bucket ORDER BY server, bucket DESC", u.first)
	})
	return u.all, err
}

// ToolUse returns how often each tool was called, as far back as the log goes.
func (db *Postgres) ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error) {
	used := toolUse{}
	err := db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var k hour
		var records, last int64
		return c.each(ctx, into{&k.hour, &k.server, &k.tool, &records, &last}, func() error {
			k.kind = string(activity.ToolCall)
			used.add(k, records, last)
			return nil
		}, "SELECT max(hour), server, tool, sum(records)::bigint, max(last) FROM activity_hour WHERE type = $1 GROUP BY server, tool", string(activity.ToolCall))
	})
	return used, err
}
