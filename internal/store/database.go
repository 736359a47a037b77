package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Database is the interface to everything that one SQLite or PostgreSQL database stores.
type Database interface {
	activity.Store
	approval.Store
	auth.TokenStore
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
	PutResult(ctx context.Context, r StoredResult) error
	GetResult(ctx context.Context, handle string) (StoredResult, error)
	SessionKey(ctx context.Context, key []byte) (stored []byte, err error)
	SaveEndedSessions(ctx context.Context, until map[string]time.Time) error
	IsSessionEnded(ctx context.Context, record string) (bool, error)
	LearnedSessions(ctx context.Context) ([]LearnedSession, error)
	SaveLearnedSession(ctx context.Context, l LearnedSession) error
	// ApprovalQuestions returns the store of questions about calls, and of leases.
	ApprovalQuestions() *ApprovalQuestionStore
	// ReopenSignal receives a value when the database may have been replaced. The receiver must store its data again.
	ReopenSignal() <-chan struct{}
	// RewriteFilesIfDeleted writes database files again if they were deleted. The caller must call it once a second.
	RewriteFilesIfDeleted()
	Close() error
}

// OpenDatabase opens the database of an instance: a file in its data directory, or a shared PostgreSQL database. The
// second result is the shared database, or nil.
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
