// Package store keeps what must outlive the process, in SQLite or PostgreSQL: the
// activity records, the approvals, the agent tokens, the last known tools of each
// server, and large results. SQLite is a file; Postgres (postgres*.go) is a database that
// several processes share, each with a chain of its own.
//
// It guarantees that what one call stores is there wholly or not at all, that a
// file is put aside only when every repeated check finds it damaged, and that
// opening never holds anybody up: Open returns at once, and what needs the
// database waits for it. See suspect.go for what a failure of the disk does.
// Any filter over a million records answers in milliseconds, with the exact
// number of matches (see activity_list.go for how). It does not decide what is
// recorded, masks nothing, and is the only package with SQL in it. The migrations
// are one folder for each database; storetest is the suite that each must pass.
package store

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// SQLite is the database. It is safe for concurrent use.
type SQLite struct {
	sqliteChainStore
	path            string
	logger          *slog.Logger
	clock           steadyClock
	stop            context.CancelFunc
	done            chan struct{}
	reopened        chan struct{} // see Reopened
	firstRetryDelay time.Duration // after the first try to open; then it doubles

	openState[sqliteEngine]          // its mu guards what follows, too
	pendingNotes            []string // what has happened to the file and is not told yet
	filesPutAside           int      // how many files were put aside
	writeErr                error    // why nothing is written now, though engine is there
	damagedRowErrors        int      // how often rows could not be right, in a file that is well
}

// sqliteChainStore is what a SQLite does so that its records can be proven, and erased.
type sqliteChainStore struct{ db *SQLite }

const (
	minOpenDelay = 250 * time.Millisecond
	maxOpenDelay = 2 * time.Second
	// maxFilesPutAside stops putting files aside when that does not help: then the disk
	// is broken, not the file.
	maxFilesPutAside = 3
)

var errClosed = errors.New("the database is closed")

// OpenSQLite opens the database at path, and makes it when there is none, in the
// background.
func OpenSQLite(path string, logger *slog.Logger) *SQLite {
	return openSQLite(path, logger, minOpenDelay)
}

func openSQLite(path string, logger *slog.Logger, pause time.Duration) *SQLite {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &SQLite{
		path: path, logger: logger, clock: steadyClock{time.Now, time.Now()}, stop: stop, firstRetryDelay: pause,
		done: make(chan struct{}), reopened: make(chan struct{}, 1), openState: newOpenState[sqliteEngine](),
	}
	db.db = db
	go db.keepOpen(ctx)
	return db
}

// ReopenSignal tells that the database was opened again while the program runs: the
// same file after a failure, or a new one in the place of a lost one. Whoever
// knows what belongs into it has to store it again.
func (db *SQLite) ReopenSignal() <-chan struct{} { return db.reopened }

// setState says what the database is now.
func (db *SQLite) setState(e *sqliteEngine, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.writeErr = nil
	db.setStateLocked(e, wrapDiskError(err))
}

// waitWritable waits for the database, to write to it.
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

// Close closes the database.
func (db *SQLite) Close() error {
	db.stop()
	<-db.done
	return nil
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
