// Package store keeps what must outlive the process, in SQLite: the activity
// records, the approvals, the last known tools of each server, and large
// results.
//
// It guarantees that what one call stores is there wholly or not at all, that a
// damaged file is put aside and never written to, and that opening never holds
// anybody up: Open returns at once, and what needs the database waits for it.
// Any filter over a million records answers in milliseconds, with the exact
// number of matches (see activity_list.go for how). It does not decide what is
// recorded, masks nothing, and is the only package with SQL in it. The migrations
// are one folder for each database; storetest is the suite that each must pass.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DB is the database. It is safe for concurrent use.
type DB struct {
	path   string
	logger *slog.Logger
	now    func() time.Time
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex // guards what follows
	engine  *engine    // nil while the database is not open
	err     error      // why not; nil before the first attempt has ended
	changed chan struct{}
	notes   []string // what has happened to the file and is not told yet
	broken  int      // how many files were put aside
}

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
func Open(path string, logger *slog.Logger) *DB {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &DB{
		path: path, logger: logger, now: time.Now, stop: stop,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	go db.keepOpen(ctx)
	return db
}

// keepOpen opens the database, and again whenever it was put aside.
func (db *DB) keepOpen(ctx context.Context) {
	defer close(db.done)
	wait := openFirst
	for {
		e, err := db.openOnce(ctx)
		if err == nil {
			wait = openFirst
			lost := db.set(e, nil)
			select {
			case <-ctx.Done():
				db.set(nil, errClosed)
				if err := e.close(); err != nil {
					db.logger.Warn("the database did not close well", "error", err)
				}
				return
			case <-lost:
				continue
			}
		}
		if ctx.Err() != nil {
			db.set(nil, errClosed)
			return
		}
		db.logger.Error("the database cannot be opened", "path", db.path, "error", err)
		db.set(nil, err)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		wait = min(2*wait, openLast)
	}
}

// set says what the database is now. The channel is closed when that changes.
func (db *DB) set(e *engine, err error) <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.engine, db.err = e, err
	close(db.changed)
	db.changed = make(chan struct{})
	return db.changed
}

// openOnce opens the file. A damaged one is put aside, and a new one made.
func (db *DB) openOnce(ctx context.Context) (*engine, error) {
	for {
		e, err := openEngine(ctx, db.path, db.now)
		if err == nil {
			return e, nil
		}
		if !isCorrupt(err) {
			return nil, err
		}
		if asideErr := db.putAside(err); asideErr != nil {
			return nil, errors.Join(err, asideErr)
		}
	}
}

// putAside moves a damaged file out of the way, for somebody to look at.
func (db *DB) putAside(why error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken++; db.broken > maxBroken {
		return fmt.Errorf("the database was damaged %d times; check the disk", db.broken)
	}
	aside := fmt.Sprintf("%s.corrupt-%s", db.path, db.now().UTC().Format("20060102T150405.000"))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(db.path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("put a damaged database aside: %w", err)
		}
	}
	db.logger.Error("the database is damaged; it was put aside and a new one is begun",
		"error", why, "aside", aside)
	db.notes = append(db.notes, fmt.Sprintf(
		"The database was damaged and is kept as %s; a new one was begun. It has the records that are still in the spool, the damaged file has the older ones.",
		filepath.Base(aside)))
	return nil
}

// use waits for the database.
func (db *DB) use(ctx context.Context) (*engine, error) {
	for {
		db.mu.Lock()
		e, err, changed := db.engine, db.err, db.changed
		db.mu.Unlock()
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// failed looks at the error of something that writes. When the file is damaged,
// writing to it ends: it is put aside.
func (db *DB) failed(e *engine, err error) error {
	if err == nil || !isCorrupt(err) {
		return err
	}
	db.mu.Lock()
	mine := db.engine == e
	if mine {
		db.engine, db.err = nil, nil
	}
	db.mu.Unlock()
	if !mine {
		return err
	}
	closeErr := e.close()
	if closeErr != nil {
		db.logger.Warn("the damaged database did not close well", "error", closeErr)
	}
	if asideErr := db.putAside(err); asideErr != nil {
		err = errors.Join(err, asideErr)
	}
	db.mu.Lock()
	close(db.changed) // keepOpen opens again
	db.changed = make(chan struct{})
	db.mu.Unlock()
	return err
}

// Ready waits until the database is open, or has failed to open. It goes on
// being tried then.
func (db *DB) Ready(ctx context.Context) error {
	_, err := db.use(ctx)
	return err
}

// Close closes the database.
func (db *DB) Close() error {
	db.stop()
	<-db.done
	return nil
}
