// Package store keeps what must outlive the process, in SQLite or PostgreSQL: the
// activity records, the approvals, the agent tokens, the last known tools of each
// server, and large results. DB is a file; Postgres (postgres*.go) is a database that
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

// DB is the database. It is safe for concurrent use.
type DB struct {
	proofs
	path     string
	logger   *slog.Logger
	clock    clock
	stop     context.CancelFunc
	done     chan struct{}
	reopened chan struct{} // see Reopened
	pause    time.Duration // after the first try to open; then it doubles

	opened[engine]          // its mu guards what follows, too
	notes          []string // what has happened to the file and is not told yet
	broken         int      // how many files were put aside
	halted         error    // why nothing is written now, though engine is there
	wrong          int      // how often rows could not be right, in a file that is well
}

// proofs is what a DB does so that its records can be proven, and erased.
type proofs struct{ db *DB }

const (
	openFirst = 250 * time.Millisecond
	openLast  = 2 * time.Second
	// maxBroken stops putting files aside when that does not help: then the disk
	// is broken, not the file.
	maxBroken = 3
)

var errClosed = errors.New("the database is closed")

// Open opens the database at path, and makes it when there is none, in the
// background.
func Open(path string, logger *slog.Logger) *DB { return open(path, logger, openFirst) }

func open(path string, logger *slog.Logger, pause time.Duration) *DB {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &DB{
		path: path, logger: logger, clock: clock{time.Now, time.Now()}, stop: stop, pause: pause,
		done: make(chan struct{}), reopened: make(chan struct{}, 1), opened: notOpened[engine](),
	}
	db.db = db
	go db.keepOpen(ctx)
	return db
}

// Reopened tells that the database was opened again while the program runs: the
// same file after a failure, or a new one in the place of a lost one. Whoever
// knows what belongs into it has to store it again.
func (db *DB) Reopened() <-chan struct{} { return db.reopened }

// set says what the database is now.
func (db *DB) set(e *engine, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.halted = nil
	db.become(e, ofDisk(err))
}

// writer waits for the database, to write to it.
func (db *DB) writer(ctx context.Context) (*engine, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	halted := db.halted
	db.mu.Unlock()
	if halted != nil {
		return nil, halted
	}
	return e, nil
}

// Close closes the database.
func (db *DB) Close() error {
	db.stop()
	<-db.done
	return nil
}
