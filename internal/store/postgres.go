package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store/activity"
)

// Postgres is a PostgreSQL database that several processes share. Each process is an instance. The instances notify
// each other of changes, and every query reads the records of all instances. An instance writes only its own records,
// so that each hash chain has one writer. ProjectEntries locks the row of its instance and continues only if the stored
// position is its own last position. Postgres keeps no records in memory. It is safe for concurrent use.
type Postgres struct {
	commonStore
	config *pgconn.Config
	name   string // name of the instance
	logger *slog.Logger
	stop   context.CancelFunc
	done   chan struct{}
	// reconnectWait is pgReconnectWait, except in tests.
	reconnectWait time.Duration
	recordCount   atomic.Int64
	pingSentAt    atomic.Int64 // time of the last ping; 0 if it was answered
	remoteChanges remoteChangeInbox
	openState[pgEngine]

	deciding      sync.Mutex // guards the field below
	loadedVersion int64      // version of the decisions at the last load or change
}

var _ activity.SharedStore = (*Postgres)(nil) // package activity checks for it with a type assertion

const (
	// pgPingInterval is the time between pings of the server. After pgSlowAfter without a response, the database counts
	// as unhealthy.
	pgPingInterval = 400 * time.Millisecond
	pgSlowAfter    = 500 * time.Millisecond
	// pgReconnectWait is how long calls wait for new connections after the old ones were lost.
	pgReconnectWait = 10 * time.Second
	// pgMaxRetryDelay is the maximum delay between attempts to connect.
	pgMaxRetryDelay = time.Second
	// pgMaxReaders is the number of connections for reading. In addition, one connection writes and one listens for
	// notifications.
	pgMaxReaders = 4
)

// OpenPostgres opens the database at an address in the background. The data directory contains the name of the
// instance.
func OpenPostgres(address, dir string, logger *slog.Logger) (*Postgres, error) {
	return openPostgres(address, dir, logger, pgReconnectWait)
}

func openPostgres(address, dir string, logger *slog.Logger, patience time.Duration) (*Postgres, error) {
	config, err := newPgConfig(address)
	if err != nil {
		return nil, err
	}
	name, err := loadOrCreateInstanceName(dir)
	if err != nil {
		return nil, fmt.Errorf("which instance this is: %w", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &Postgres{
		config: config, name: name, logger: logger, stop: stop, reconnectWait: patience,
		done: make(chan struct{}), openState: newOpenState[pgEngine](), remoteChanges: remoteChangeInbox{signal: make(chan struct{}, 1)},
	}
	db.commonStore = commonStore{db, steadyClock{time.Now, time.Now()}}
	go db.keepOpen(ctx)
	return db, nil
}

// InstanceName returns the name of this instance.
func (db *Postgres) InstanceName() string { return db.name }

// keepOpen opens the database, and reopens it after each loss, until ctx ends.
func (db *Postgres) keepOpen(ctx context.Context) {
	defer close(db.done)
	for wait, before := minOpenDelay, false; ; {
		e, err := openPgEngine(ctx, db)
		if err == nil {
			if before {
				db.logger.Info("the database is available again")
			}
			db.setState(e, nil)
			db.remoteChanges.merge(RemoteChanges{All: true})
			before, wait = true, minOpenDelay
			err = e.listenUntilLost(ctx)
			db.pingSentAt.Store(0)
			db.setState(nil, err)
			e.close()
		} else {
			db.setState(nil, err)
		}
		if ctx.Err() == nil {
			db.logger.Error("the database is unavailable", "host", db.config.Host, "error", oneLineError{err})
		}
		if !sleepContext(ctx, wait) {
			db.setState(nil, errClosed)
			return
		}
		wait = min(2*wait, pgMaxRetryDelay)
	}
}

// setState publishes the connections, or the reason why there are none.
func (db *Postgres) setState(e *pgEngine, err error) {
	if err != nil {
		err = fmt.Errorf("the database is unavailable: %w", oneLineError{err})
	}
	db.openState.setState(e, err)
}

// oneLineError is an error whose text is on one line and has no repeated lines.
type oneLineError struct{ error }

func (e oneLineError) Error() string {
	var lines []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (e oneLineError) Unwrap() error { return e.error }

// waitOpen returns the connections to the database. If they were lost, it waits some time for new ones, so that calls
// do not fail because a server is slow or restarting.
func (db *Postgres) waitOpen(ctx context.Context) (*pgEngine, error) {
	for {
		e, changed, err := db.current()
		if e != nil && e.live().Err() == nil {
			return e, nil
		}
		var patience <-chan time.Time
		if e == nil && err != nil {
			left := db.reconnectWait - db.timeSinceClosed()
			if left <= 0 || errors.Is(err, errClosed) {
				return nil, err
			}
			patience = time.After(left)
		}
		select {
		case <-changed:
		case <-patience:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// HealthError returns the error that makes the database unhealthy. It returns nil if the database is healthy or its
// state is not known yet. It does not block.
func (db *Postgres) HealthError() error {
	_, _, err := db.current()
	if at := db.pingSentAt.Load(); err == nil && at != 0 {
		if silent := time.Since(time.Unix(0, at)); silent >= pgSlowAfter {
			return fmt.Errorf("the database %s has not responded for %v", db.config.Host, silent.Round(100*time.Millisecond))
		}
	}
	return err
}

// RewriteFilesIfDeleted does nothing, because the server owns the files.
func (db *Postgres) RewriteFilesIfDeleted() {}

// ReopenSignal returns nil, which is a channel that never receives. The shared database is authoritative, so no
// instance has to store its data again.
func (db *Postgres) ReopenSignal() <-chan struct{} { return nil }

// RecordCount returns the number of records, which may be up to one second old.
func (db *Postgres) RecordCount() int64 { return db.recordCount.Load() }

// Close closes the database.
func (db *Postgres) Close() error {
	db.stop()
	<-db.done
	return nil
}

// withReadConn runs fn with a connection for reading.
func (db *Postgres) withReadConn(ctx context.Context, fn func(ctx context.Context, c *pgConn) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.withReadConn(ctx, fn)
}

// withSnapshotTx runs fn in a transaction that reads one consistent snapshot.
func (db *Postgres) withSnapshotTx(ctx context.Context, fn func(ctx context.Context, c *pgConn) error) error {
	return db.withReadConn(ctx, func(ctx context.Context, c *pgConn) error {
		return c.runTx(ctx, beginRead, func() error { return fn(ctx, c) })
	})
}

// writeTx runs fn in a transaction of the writing connection.
func (db *Postgres) writeTx(ctx context.Context, fn func(ctx context.Context, c *pgConn) error) error {
	for {
		e, err := db.waitOpen(ctx)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err = e.writeTx(fn); !errors.Is(err, errTxNotStarted) {
			return err
		}
	}
}

// update implements transactor.
func (db *Postgres) update(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	return db.writeTx(ctx, func(ctx context.Context, c *pgConn) error { return fn(ctx, c) })
}

func (db *Postgres) updateDurably(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error {
	return db.update(ctx, fn) // update is durable, because the server syncs each commit
}

func (db *Postgres) updateDecisions(ctx context.Context, always bool, payload string, fn func(ctx context.Context, t sqlTx) error) error {
	db.deciding.Lock()
	defer db.deciding.Unlock()
	var version int64
	err := db.update(ctx, func(ctx context.Context, t sqlTx) error {
		if _, err := t.firstRow(ctx, scanTargets{&version}, "UPDATE decisions SET version = version + 1 RETURNING version"); err != nil {
			return err
		}
		if !always && db.loadedVersion != 0 && version != db.loadedVersion+1 {
			return approval.ErrStale
		}
		if err := fn(ctx, t); err != nil {
			return err
		}
		t.notify(payload)
		return nil
	})
	if err == nil {
		db.loadedVersion = version
	}
	return err
}

func (db *Postgres) view(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	return db.withReadConn(ctx, func(ctx context.Context, c *pgConn) error { return fn(ctx, c) })
}

func (db *Postgres) snapshot(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	return db.withSnapshotTx(ctx, func(ctx context.Context, c *pgConn) error { return fn(ctx, c) })
}

func (db *Postgres) load(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	return db.view(ctx, fn)
}

func (db *Postgres) loadDecisions(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error {
	db.deciding.Lock()
	defer db.deciding.Unlock()
	var version int64
	err := db.snapshot(ctx, func(ctx context.Context, r sqlReader) error {
		if _, err := r.firstRow(ctx, scanTargets{&version}, "SELECT version FROM decisions"); err != nil {
			return err
		}
		return fn(ctx, r)
	})
	if err == nil {
		db.loadedVersion = version
	}
	return err
}

// RemoteChangeSignal receives a value when TakeRemoteChanges has something to return.
func (db *Postgres) RemoteChangeSignal() <-chan struct{} { return db.remoteChanges.signal }

// TakeRemoteChanges returns the changes that other instances made since its last call.
func (db *Postgres) TakeRemoteChanges() RemoteChanges {
	db.remoteChanges.mu.Lock()
	defer db.remoteChanges.mu.Unlock()
	all := db.remoteChanges.pending
	db.remoteChanges.pending = RemoteChanges{}
	return all
}
