package store

import (
	"context"
	"encoding/json"
)

// SaveTools stores the definitions that a server listed last and replaces earlier ones.
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

// ForgetTools deletes the definitions of a server.
func (db *SQLite) ForgetTools(ctx context.Context, server string) error {
	return db.writeTx(ctx, func(c *sqliteWriteConn) error {
		c.execInTx("DELETE FROM tool WHERE server = ?", server)
		return nil
	})
}
