package store

import (
	"context"
	"encoding/json"
)

// SaveTools keeps the definitions that server listed last, instead of those
// before.
func (db *SQLite) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	return db.writeTx(ctx, func(c *sqliteWriteConn) error {
		c.execInTx("DELETE FROM tool WHERE server = ?", server)
		for i, raw := range raws {
			c.execInTx("INSERT INTO tool (server, position, definition) VALUES (?, ?, ?)", server, int64(i), []byte(raw))
		}
		return nil
	})
}

// LoadTools returns the last known definitions of every server.
func (db *SQLite) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	tools := map[string][]json.RawMessage{}
	var server string
	var raw []byte
	err = eachRow(ctx, e.reads, scanTargets{&server, &raw}, func() error {
		tools[server] = append(tools[server], raw)
		return nil
	}, "SELECT server, definition FROM tool ORDER BY server, position")
	return tools, err
}

// ForgetTools removes the definitions of server.
func (db *SQLite) ForgetTools(ctx context.Context, server string) error {
	return db.writeTx(ctx, func(c *sqliteWriteConn) error {
		c.execInTx("DELETE FROM tool WHERE server = ?", server)
		return nil
	})
}

// withWriteConn runs fn in a transaction of the writing connection.
func (db *SQLite) writeTx(ctx context.Context, fn func(c *sqliteWriteConn) error) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	err = e.writeConn.runTx(ctx, func() error { return fn(e.writeConn) })
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}

// writeTxDurably is SQLite.write, and what it has written survives a loss of power when it returns.
func writeTxDurably(ctx context.Context, db *SQLite, fn func(c *sqliteWriteConn) error) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	// Not by exec: SQLite obeys when the statement is prepared, which exec does once.
	if _, err = e.writeConn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = FULL"); err == nil {
		err = e.writeConn.runTx(ctx, func() error { return fn(e.writeConn) })
		_, also := e.writeConn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
		if err == nil && also != nil {
			err = also
		}
	}
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}
