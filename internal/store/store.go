// Package store stores persistent data in SQLite or PostgreSQL: the activity records, the approvals, the questions
// about calls and the leases, the agent tokens, the key of session IDs, the last known tools of each server, and large
// results. No other package contains SQL.
//
// Files that serve both databases:
//   - database.go, sql_tx.go: the Database interface, the notation for statements that both databases run, and the
//     interfaces of transactions and readers
//   - approvals.go, tokens.go, sessions.go, tools.go, results.go, questions.go, presence.go, activity_use.go: the
//     tables other than the activity log
//   - columns and text search: column.go encodes one value for each record of a chunk, search_words.go splits text into
//     words, activity_prefix.go and activity_text.go build and search the text index, bitmap.go and selection.go are
//     sets of records
//   - queries: activity_list.go, activity_snapshot.go and activity_get.go filter, page and read records,
//     activity_merge.go merges instances, activity_selection.go, activity_summary.go, activity_rollup.go and
//     histogram.go count
//   - the hash chain: activity_verify.go reads it in order, activity_gaps.go keeps hashes of pruned entries,
//     activity_erase.go erases fields
//   - open_state.go, clock.go, prune_limit.go: whether the database is open, a time that ignores changes of the clock,
//     the limit of pruning by age
//
// Files for SQLite (one file in the data directory):
//   - store.go, sqlite.go, sqlite_engine.go, sqlite_conn.go, sqlite_errors.go: open, migrate, connections,
//     transactions, error codes
//   - recovery.go: checks a file after a failure, renames a damaged file, opens the database again
//   - deleted_file.go: writes the database again after its file was deleted
//   - peek.go: reads a database for the doctor, without changing it
//   - activity_project.go: inserts records from the spool and seals them into chunks; activity_load.go reads the index
//     into memory, and adds columns that chunks of older versions lack
//   - activity_read.go: reads records and columns
//   - activity_tidy.go, activity_refused.go: retention, and the quota of refusals; PostgreSQL uses the same decisions
//
// Files for PostgreSQL (one database for several instances):
//   - postgres.go, postgres_engine.go, postgres_conn.go: the database, its connections, statements and values
//   - postgres_address.go, postgres_migrate.go: the address, migrations
//   - postgres_notify.go, postgres_remote.go: changes by other instances
//   - postgres_project.go, postgres_seal.go, postgres_tidy.go, postgres_chain.go: insert records, write chunks and the
//     text index, retention, the chains of other instances
//   - postgres_snapshot.go, postgres_list.go, postgres_get.go: read records and columns of all instances
//
// Guarantees and limits:
//   - A call stores everything or nothing.
//   - A database file is renamed and replaced only if every repeated check finds it damaged.
//   - Opening never blocks. OpenSQLite returns immediately, and calls that need the database wait for it.
//   - A query with any filter over a million records returns in milliseconds, with the exact number of matches (see
//     activity_snapshot.go).
//   - The package does not updateDecisions what is recorded, and masks nothing.
//   - Each database has one folder of migrations. Both databases must pass the tests in suite_*_test.go.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"
)

// SQLite is the database in one SQLite file. It is safe for concurrent use.
type SQLite struct {
	commonStore
	path            string
	logger          *slog.Logger
	stop            context.CancelFunc
	done            chan struct{}
	reopened        chan struct{} // returned by ReopenSignal
	firstRetryDelay time.Duration // delay before the second attempt to open; it doubles with each attempt

	openState[sqliteEngine]          // its mu also guards the fields below
	pendingNotes            []string // notes about the file for the log, until ResumePosition returns them
	filesPutAside           int      // number of damaged files that were renamed
	writeErr                error    // why writes are rejected although the engine exists
	damagedRowErrors        int      // number of errors about invalid rows in a file that passes the integrity check
}

const (
	minOpenDelay = 250 * time.Millisecond
	maxOpenDelay = 2 * time.Second
	// maxFilesPutAside limits the number of damaged files that are renamed. If there are more, the disk is broken
	// rather than the file.
	maxFilesPutAside = 3
)

var errClosed = errors.New("the database is closed")

// OpenSQLite opens the database at path in the background. It creates the database if it does not exist.
func OpenSQLite(path string, logger *slog.Logger) *SQLite {
	return openSQLite(path, logger, minOpenDelay)
}

func openSQLite(path string, logger *slog.Logger, pause time.Duration) *SQLite {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &SQLite{
		path: path, logger: logger, stop: stop, firstRetryDelay: pause,
		done: make(chan struct{}), reopened: make(chan struct{}, 1), openState: newOpenState[sqliteEngine](),
	}
	db.commonStore = commonStore{db, steadyClock{time.Now, time.Now()}}
	go db.keepOpen(ctx)
	return db
}

// ReopenSignal receives a value when the database was opened again while the program is running. The database is either
// the same file after a failure, or a new file that replaces a lost one. The receiver must store its data again.
func (db *SQLite) ReopenSignal() <-chan struct{} { return db.reopened }

// setState publishes the engine, or the reason why the database is not open.
func (db *SQLite) setState(e *sqliteEngine, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.writeErr = nil
	db.setStateLocked(e, wrapDiskError(err))
}

// waitWritable waits until the database is open. It returns an error if writes are rejected.
func (db *SQLite) waitWritable(ctx context.Context) (*sqliteEngine, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	halted := db.writeErr
	db.mu.Unlock()
	if halted != nil {
		return nil, halted
	}
	return e, nil
}

// Close closes the database, and waits until its goroutine has ended.
func (db *SQLite) Close() error {
	db.stop()
	<-db.done
	return nil
}

// writeTx runs fn in a transaction of the writing connection.
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

// update implements transactor.
func (db *SQLite) update(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	return db.writeTx(ctx, func(c *sqliteWriteConn) error { return fn(ctx, c) })
}

func (db *SQLite) updateDurably(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	// Do not use exec here. SQLite applies this pragma when it prepares the statement, but exec prepares each statement
	// only once.
	if _, err = e.writeConn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = FULL"); err == nil {
		err = e.writeConn.runTx(ctx, func() error { return fn(ctx, e.writeConn) })
		_, also := e.writeConn.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
		if err == nil && also != nil {
			err = also
		}
	}
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}

func (db *SQLite) updateDecisions(ctx context.Context, _ bool, _ string, fn func(ctx context.Context, t sqlTx) error) error {
	return db.update(ctx, fn)
}

func (db *SQLite) view(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	return fn(ctx, sqliteReader{e.reads})
}

func (db *SQLite) snapshot(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	return sqliteSnapshot(ctx, e.reads, fn)
}

// sqliteSnapshot runs fn in a transaction for reading.
func sqliteSnapshot(ctx context.Context, db *sql.DB, fn func(ctx context.Context, r sqlReader) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read only
	// For a context that can end, the driver would start a goroutine for each statement.
	return fn(context.WithoutCancel(ctx), sqliteReader{tx})
}

func (db *SQLite) load(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	return db.blockWritesOnDamage(e, e.addDamageIfSchemaDiffers(ctx, fn(ctx, sqliteReader{e.reads})))
}

func (db *SQLite) loadDecisions(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	return db.load(ctx, fn)
}
