package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Database is all that is kept in one database, of SQLite or PostgreSQL.
type Database interface {
	activity.Store
	approval.Store
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
	PutResult(ctx context.Context, r StoredResult) error
	GetResult(ctx context.Context, handle string) (StoredResult, error)
	// Asks are what people are asked about, and the leases.
	Questions() *QuestionStore
	// Reopened tells that the database may be another one: whoever knows what belongs
	// into it has to store it again.
	ReopenSignal() <-chan struct{}
	// Look looks at the files, once a second.
	CheckFiles()
	Close() error
}

// OpenDatabase opens the database of an instance: a file in its data directory, or the one
// that is shared, which is returned a second time then.
func OpenDatabase(address, dir string, logger *slog.Logger) (Database, *Postgres, error) {
	if !IsPostgres(address) {
		return OpenSQLite(filepath.Join(dir, "mcpproxy.db"), logger), nil, nil
	}
	shared, err := OpenPostgres(address, dir, logger)
	if err != nil {
		return nil, nil, problem.Newf(problem.InvalidConfig, "The database cannot be used: %v", err).WithHint("See `database` in the configuration file.")
	}
	return shared, shared, nil
}

// TokenStoreOf are the agent tokens in a database.
func TokenStoreOf(db Database) auth.TokenStore {
	if file, ok := db.(*SQLite); ok {
		return NewTokenStore(file)
	}
	return db.(*Postgres)
}
