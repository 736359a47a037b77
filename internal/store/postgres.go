package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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

func (db *Postgres) decide(ctx context.Context, always bool, payload string, fn func(ctx context.Context, t sqlTx) error) error {
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

// pgEngine is the set of connections to a reachable database. If one of them detects that the database is unavailable,
// all are closed and a new pgEngine is opened.
type pgEngine struct {
	db       *Postgres
	instance int64
	live     func() context.Context // returns a context that ends when the engine ends
	cancel   context.CancelCauseFunc

	writing  sync.Mutex // one transaction at a time; guards the fields below
	writer   *pgConn
	hashes   hashCache
	resumed  bool
	position pgSpoolPosition // position after the last projection

	listener   *pgConn
	agePruning agePruneLimiter // only for Tidy

	readSlots   chan struct{} // contains one token for each reader in use
	idleReaders chan *pgConn  // reading connections that are not in use
	openReaders atomic.Int64  // number of open reading connections, including those in use
}

// errTxNotStarted means that the connections were lost before the transaction began.
var errTxNotStarted = fmt.Errorf("%w, nothing was written", activity.ErrAgain)

// pgSpoolPosition is a position in the spool.
type pgSpoolPosition struct {
	chain string
	seq   int64
}

func openPgEngine(ctx context.Context, db *Postgres) (*pgEngine, error) {
	e := &pgEngine{db: db, hashes: hashCache{}, readSlots: make(chan struct{}, pgMaxReaders), idleReaders: make(chan *pgConn, pgMaxReaders)}
	ctx, e.cancel = context.WithCancelCause(ctx)
	e.live = func() context.Context { return ctx }
	err := e.openConnections()
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *pgEngine) openConnections() (err error) {
	ctx, cancel := context.WithTimeout(e.live(), time.Minute) // migrations may wait for those of other instances
	defer cancel()
	if e.writer, err = e.dial(ctx); err != nil {
		return err
	}
	if err = migratePostgres(ctx, e.writer, e.db.config.RuntimeParams["search_path"]); err != nil {
		return err
	}
	host, _ := os.Hostname()
	_, err = e.writer.firstRow(ctx, scanTargets{&e.instance}, `INSERT INTO instance (name, host) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET host = excluded.host, seen = now() RETURNING id`, e.db.name, cleanPgText(host))
	if err != nil {
		return err
	}
	e.writer.instance = e.instance
	reader, err := e.dial(ctx)
	if err != nil {
		return err
	}
	e.openReaders.Add(1)
	e.idleReaders <- reader
	if e.listener, err = e.dial(ctx); err != nil {
		return err
	}
	if err = e.listener.execScript(ctx, "LISTEN "+pgChannel); err != nil {
		return err
	}
	return e.pingAndCountRecords(ctx)
}

func (e *pgEngine) dial(ctx context.Context) (*pgConn, error) {
	config := e.db.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if e.writer != nil && n.PID != e.writer.PID() {
			e.db.remoteChanges.addNotification(n.Payload)
		}
	}
	c, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &pgConn{PgConn: c, instance: e.instance, prepared: map[string]pgStatement{}}, nil
}

// close ends the engine, and closes each connection when it is no longer in use.
func (e *pgEngine) close() {
	e.cancel(errClosed)
	e.writing.Lock()
	defer e.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, c := range []*pgConn{e.writer, e.listener} {
		if c != nil {
			_ = c.Close(ctx) // the connection is already closed, or closes now
		}
	}
	e.closeIdleReaders(ctx)
	for range pgMaxReaders { // readers finish soon, because the engine has ended
		e.readSlots <- struct{}{}
	}
}

// listenUntilLost listens for notifications until the database is unavailable or ctx ends. It returns the reason.
func (e *pgEngine) listenUntilLost(ctx context.Context) error {
	for {
		wait, cancel := context.WithTimeout(e.live(), pgPingInterval)
		err := e.listener.WaitForNotification(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return errClosed
		case e.live().Err() != nil:
			return context.Cause(e.live())
		case e.listener.IsClosed():
			return fmt.Errorf("the connection has ended: %w", err)
		case err == nil:
			continue
		}
		if err := e.pingAndCountRecords(e.live()); err != nil {
			return err
		}
	}
}

// pingAndCountRecords checks that the server responds, and counts the records.
func (e *pgEngine) pingAndCountRecords(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pgPingTimeout)
	defer cancel()
	e.db.pingSentAt.Store(time.Now().UnixNano())
	var records, gone int64
	_, err := e.listener.firstRow(ctx, scanTargets{&records, &gone}, `SELECT coalesce(sum(next_key - first_key), 0)::bigint,
		(SELECT coalesce(sum(bit_count(gone)), 0)::bigint FROM activity_chunk WHERE gone IS NOT NULL) FROM instance`)
	if err != nil {
		return err
	}
	e.db.pingSentAt.Store(0)
	e.db.recordCount.Store(records - gone)
	return nil
}

// endEngineIfConnLost checks whether err has closed the connection or the engine has ended. If so, it ends the engine
// and returns an error that wraps activity.ErrAgain. Otherwise it returns err.
func (e *pgEngine) endEngineIfConnLost(c *pgConn, err error) error {
	if err == nil || !c.IsClosed() && e.live().Err() == nil {
		return err
	}
	e.cancel(err)
	return fmt.Errorf("%w: %w", activity.ErrAgain, err)
}

// withWriteConn runs fn with the writing connection. It ignores the end of the caller's context, because a transaction
// is short and canceling it would close the connection.
func (e *pgEngine) withWriteConn(fn func(ctx context.Context, c *pgConn) error) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.live().Err(); err != nil {
		return fmt.Errorf("%w: %w", errTxNotStarted, context.Cause(e.live()))
	}
	return e.endEngineIfConnLost(e.writer, fn(e.live(), e.writer))
}

// writeTx runs fn in a transaction of the writing connection.
func (e *pgEngine) writeTx(fn func(ctx context.Context, c *pgConn) error) error {
	return e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		return c.runTx(ctx, beginWrite, func() error { return fn(ctx, c) })
	})
}

// withReadConn waits for a reading connection, and runs fn with it.
func (e *pgEngine) withReadConn(ctx context.Context, fn func(ctx context.Context, c *pgConn) error) error {
	select {
	case e.readSlots <- struct{}{}:
	case <-e.live().Done():
		return e.endedError()
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.readSlots }()
	c, err := e.takeReader(ctx)
	if err != nil {
		return err
	}
	err = fn(e.live(), c)
	if !c.IsClosed() && e.live().Err() == nil {
		e.idleReaders <- c
		return err
	}
	_ = c.Close(e.live())
	e.openReaders.Add(-1)
	e.closeIdleReaders(e.live()) // the server may have closed these connections, too
	if err != nil {
		err = fmt.Errorf("%w: %w", activity.ErrAgain, err)
	}
	return err
}

// endedError returns the reason why the connections were lost.
func (e *pgEngine) endedError() error {
	return fmt.Errorf("%w: %w", activity.ErrAgain, context.Cause(e.live()))
}

// closeIdleReaders closes the reading connections that are not in use.
func (e *pgEngine) closeIdleReaders(ctx context.Context) {
	for {
		select {
		case c := <-e.idleReaders:
			_ = c.Close(ctx)
			e.openReaders.Add(-1)
		default:
			return
		}
	}
}

// takeReader returns an idle reading connection or a new one. If the server accepts no more connections, takeReader
// waits until one is idle.
func (e *pgEngine) takeReader(ctx context.Context) (*pgConn, error) {
	select {
	case c := <-e.idleReaders:
		return c, nil
	default:
	}
	c, err := e.dial(e.live())
	if err == nil {
		e.openReaders.Add(1)
		return c, nil
	}
	if e.live().Err() != nil {
		return nil, e.endedError()
	}
	err = errors.Join(errors.New("no connection to the database is free"), err)
	if e.openReaders.Load() == 0 {
		return nil, err
	}
	select {
	case c := <-e.idleReaders:
		return c, nil
	case <-e.live().Done():
		return nil, e.endedError()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(e.db.reconnectWait):
		return nil, err
	}
}
