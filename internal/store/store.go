// Package store keeps what must outlive the process in SQLite: the activity
// records, the last known tools of each server, and large results.
package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// DB is the database.
type DB struct{}

// StoredResult is a large result that read_result gives in parts.
type StoredResult struct {
	Handle  string
	Actor   string
	Body    json.RawMessage
	Expires time.Time
}

// Open opens the database at path in the background.
func Open(path string, logger *slog.Logger) *DB { panic("todo") }

// Ready waits until the database is open.
func (db *DB) Ready(ctx context.Context) error { panic("todo") }

// Close closes the database.
func (db *DB) Close() error { panic("todo") }

// SaveTools keeps the definitions that server listed last.
func (db *DB) SaveTools(ctx context.Context, server string, raws []json.RawMessage) error {
	panic("todo")
}

// LoadTools gives the last known definitions of every server.
func (db *DB) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) { panic("todo") }

// ForgetTools removes the definitions of server.
func (db *DB) ForgetTools(ctx context.Context, server string) error { panic("todo") }

// PutResult keeps a result until it expires.
func (db *DB) PutResult(ctx context.Context, r StoredResult) error { panic("todo") }

// GetResult gives a stored result by its handle.
func (db *DB) GetResult(ctx context.Context, handle string) (StoredResult, error) { panic("todo") }
