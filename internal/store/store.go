// Package store stores persistent data in SQLite or PostgreSQL: the activity records, the approvals, the questions about calls
// and the leases, the agent tokens, the last known tools of each server, and large results. It is the only package with SQL.
//
// Files that serve both databases:
//   - database.go, sql_tx.go: the Database interface; how statements are written once for both databases; the interfaces of
//     transactions and readers
//   - approvals.go, tokens.go, tools.go, results.go, questions.go, presence.go, activity_use.go: the tables besides the
//     activity log
//   - columns and text search: column.go encodes one value for each record of a chunk, search_words.go splits text into words,
//     activity_prefix.go and activity_text.go build and search the text index, bitmap.go and selection.go are sets of records
//   - queries: activity_list.go, activity_snapshot.go filter and page, activity_merge.go merges instances,
//     activity_selection.go, activity_summary.go, activity_rollup.go and histogram.go count
//   - the hash chain: activity_verify.go reads it in order, activity_gaps.go keeps hashes of pruned entries, activity_erase.go
//     erases
//   - open_state.go, clock.go, prune_limit.go: whether the database is open, time that ignores a set clock, the limit of
//     pruning by age
//
// Files for SQLite (one file in the data directory):
//   - store.go, sqlite.go, sqlite_engine.go, sqlite_conn.go, sqlite_errors.go: open, migrate, connections, transactions, error
//     codes
//   - recovery.go: checks a file that failed, puts a damaged one aside, opens the database again
//   - deleted_file.go: writes the database again after its file was deleted
//   - peek.go: reads a database for the doctor, without changing it
//   - activity_project.go: inserts records from the spool and seals them into chunks; activity_load.go reads the index into
//     memory
//   - activity_read.go, activity_get.go: read records and columns
//   - activity_tidy.go, activity_refused.go: retention, the quota of refusals; both decide for PostgreSQL, too
//   - activity_backfill.go: columns that chunks of older versions lack
//
// Files for PostgreSQL (one database for several instances):
//   - postgres.go, postgres_conn.go, postgres_address.go, postgres_migrate.go: connections, values, address, migrations
//   - postgres_notify.go, postgres_remote.go: changes by other instances
//   - postgres_project.go, postgres_seal.go, postgres_tidy.go, postgres_chain.go: records in, chunks and text index, retention,
//     the chains of other instances
//   - postgres_snapshot.go, postgres_list.go, postgres_get.go: read records and columns of all instances
//
// Guarantees and limits:
//   - One call stores everything or nothing.
//   - A file is put aside only if every repeated check finds it damaged.
//   - Opening never blocks: OpenSQLite returns at once, and calls that need the database wait for it.
//   - Any filter over a million records answers in milliseconds, with the exact number of matches (activity_snapshot.go says
//     how).
//   - The package does not decide what is recorded, and masks nothing.
//   - The migrations are one folder for each database. storetest is the suite that both must pass.
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
	firstRetryDelay time.Duration // before the second attempt to open; doubles with each attempt

	openState[sqliteEngine]          // its mu also guards the fields below
	pendingNotes            []string // notes about the file for the log, until ResumePosition returns them
	filesPutAside           int      // damaged files that were put aside
	writeErr                error    // why writes are refused while the engine still exists
	damagedRowErrors        int      // errors about impossible rows in a file that passes the integrity check
}

const (
	minOpenDelay = 250 * time.Millisecond
	maxOpenDelay = 2 * time.Second
	// maxFilesPutAside bounds how many files are put aside. After that the disk is broken, not the
	// file.
	maxFilesPutAside = 3
)

var errClosed = errors.New("the database is closed")

// OpenSQLite opens the database at path in the background and creates it if it does not exist.
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

// ReopenSignal receives a value when the database was opened again while the program runs. It is the same file after a failure,
// or a new one that replaces a lost one. The receiver stores its data again.
func (db *SQLite) ReopenSignal() <-chan struct{} { return db.reopened }

// setState publishes the engine, or why the database is not open.
func (db *SQLite) setState(e *sqliteEngine, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.writeErr = nil
	db.setStateLocked(e, wrapDiskError(err))
}

// waitWritable waits until the database is open and returns an error if writes are refused.
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

// Close closes the database and waits for its goroutine.
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

// update is a transactor's.
func (db *SQLite) update(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	return db.writeTx(ctx, func(c *sqliteWriteConn) error { return fn(ctx, c) })
}

func (db *SQLite) updateDurably(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	// Do not use exec: SQLite applies this pragma when it prepares the statement, and exec prepares
	// once.
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

func (db *SQLite) decide(ctx context.Context, _ bool, _ string, fn func(ctx context.Context, t sqlTx) error) error {
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

// sqliteSnapshot runs fn in a transaction that reads.
func sqliteSnapshot(ctx context.Context, db *sql.DB, fn func(ctx context.Context, r sqlReader) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read only
	// The driver starts a goroutine for every statement whose context can end.
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
