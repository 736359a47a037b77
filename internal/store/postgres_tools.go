package store

import (
	"context"
	"encoding/json"
	"time"
)

// SaveTools stores the definitions that a server listed last and replaces earlier ones.
func (db *Postgres) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	return db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		if _, err := c.exec(ctx, "DELETE FROM tool WHERE server = $1", server); err != nil {
			return err
		}
		b := pgBatch{conn: c}
		for i, raw := range raws { // another instance may do the same now
			b.queue(ctx, `INSERT INTO tool (server, position, definition) VALUES ($1, $2, $3)
				ON CONFLICT (server, position) DO UPDATE SET definition = excluded.definition`, server, int64(i), []byte(raw))
		}
		return b.send(ctx)
	})
}

// LoadTools returns the last known definitions of every server.
func (db *Postgres) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	tools := map[string][]json.RawMessage{}
	err := db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var server string
		var raw []byte
		return c.eachRow(ctx, scanTargets{&server, &raw}, func() error {
			tools[server] = append(tools[server], raw)
			return nil
		}, "SELECT server, definition FROM tool ORDER BY server, position")
	})
	return tools, err
}

// ForgetTools deletes the definitions of a server.
func (db *Postgres) ForgetTools(ctx context.Context, server string) error {
	return db.SaveTools(ctx, server, nil)
}

// PutResult stores an encrypted result until it expires or newer results need its space.
func (db *Postgres) PutResult(ctx context.Context, r StoredResult) error {
	id, body, err := r.encryptBody()
	if err != nil {
		return err
	}
	jumped, now := db.clock.wallClockShift(), db.clock.steadyNow()
	return db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		b.queue(ctx, "DELETE FROM result WHERE expires <= $1 OR handle = $2", now.UnixMicro(), id)
		b.queue(ctx, `DELETE FROM result WHERE number IN (SELECT number FROM (
				SELECT number, sum(octet_length(body)) OVER (ORDER BY number DESC) AS newer FROM result) AS r WHERE newer > $1)`, int64(maxResultBytes-len(body)))
		b.queue(ctx, "INSERT INTO result (handle, actor, server, tool, expires, body) VALUES ($1, $2, $3, $4, $5, $6)",
			id, cleanPgText(r.Actor), cleanPgText(r.Server), cleanPgText(r.Tool), r.Expires.Add(-jumped).UnixMicro(), body)
		return b.send(ctx)
	})
}

// GetResult returns a stored result, or a NOT_FOUND problem.
func (db *Postgres) GetResult(ctx context.Context, handle string) (StoredResult, error) {
	r := StoredResult{Handle: handle}
	var body []byte
	var expires int64
	err := db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		found, err := c.firstRow(ctx, scanTargets{&r.Actor, &r.Server, &r.Tool, &expires, &body}, "SELECT actor, server, tool, expires, body FROM result WHERE handle = $1", resultIDOfHandle(handle))
		if err == nil && (!found || expires <= db.clock.steadyNow().UnixMicro()) {
			return noResultError()
		}
		return err
	})
	if err != nil {
		return StoredResult{}, err
	}
	r.Expires = time.UnixMicro(expires)
	return r, r.decryptBody(body)
}
