package store

import (
	"context"
	"encoding/json"
)

// SaveTools keeps the definitions that server listed last, instead of those
// before.
func (db *DB) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	return db.write(ctx, func(c *rawConn) error {
		c.do("DELETE FROM tool WHERE server = ?", server)
		for i, raw := range raws {
			c.do("INSERT INTO tool (server, position, definition) VALUES (?, ?, ?)", server, int64(i), []byte(raw))
		}
		return nil
	})
}

// LoadTools returns the last known definitions of every server.
func (db *DB) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	tools := map[string][]json.RawMessage{}
	var server string
	var raw []byte
	err = each(ctx, e.reads, into{&server, &raw}, func() error {
		tools[server] = append(tools[server], raw)
		return nil
	}, "SELECT server, definition FROM tool ORDER BY server, position")
	return tools, err
}

// ForgetTools removes the definitions of server.
func (db *DB) ForgetTools(ctx context.Context, server string) error {
	return db.write(ctx, func(c *rawConn) error {
		c.do("DELETE FROM tool WHERE server = ?", server)
		return nil
	})
}

// write runs fn in a transaction of the writing connection.
func (db *DB) write(ctx context.Context, fn func(c *rawConn) error) error {
	e, err := db.writer(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	err = e.conn.tx(ctx, func() error { return fn(e.conn) })
	e.writing.Unlock()
	return db.failed(e, err)
}

// durably is DB.write, and what it has written survives a loss of power when it returns.
func durably(ctx context.Context, db *DB, fn func(c *rawConn) error) error {
	e, err := db.writer(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	// Not by exec: SQLite obeys when the statement is prepared, which exec does once.
	if _, err = e.conn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = FULL"); err == nil {
		err = e.conn.tx(ctx, func() error { return fn(e.conn) })
		_, also := e.conn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
		if err == nil && also != nil {
			err = also
		}
	}
	e.writing.Unlock()
	return db.failed(e, err)
}
