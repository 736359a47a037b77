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

	"mcpproxy/internal/store/activity"
)

// Postgres is a PostgreSQL database that any number of processes share, each of them an
// instance. What one has stored the others are told, and every query is about the
// records of all. An instance writes its own records only, so that each chain has one
// writer: Project holds the row of its instance, and goes on only from where it was left.
// Nothing of the records is kept in memory. It is safe for concurrent use.
type Postgres struct {
	pgDecisionStore
	pgChainStore
	config *pgconn.Config
	name   string // of the instance
	logger *slog.Logger
	clock  steadyClock
	stop   context.CancelFunc
	done   chan struct{}
	// patience is pgReconnectWait, but in tests.
	reconnectWait time.Duration
	recordCount   atomic.Int64
	pingSentAt    atomic.Int64 // when the server was asked whether it is there; 0: it has answered
	remoteChanges remoteChangeInbox
	openState[pgEngine]
}

// pgChainStore is what a Postgres does so that its records can be proven, and erased.
type pgChainStore struct{ db *Postgres }

// pgDecisionStore is what is decided, for all instances.
type pgDecisionStore struct {
	db *Postgres

	mu            sync.Mutex // guards what follows
	loadedVersion int64      // the version of the decisions that was loaded last
}

const (
	// pgPingInterval is how often the server is asked whether it is there, and pgSlowAfter after what
	// time without an answer that is said.
	pgPingInterval = 400 * time.Millisecond
	pgSlowAfter    = 500 * time.Millisecond
	// pgReconnectWait is how long everything waits for new connections after the old ones have ended.
	pgReconnectWait = 10 * time.Second
	// pgMaxRetryDelay is how long is waited at most before the next try to connect.
	pgMaxRetryDelay = time.Second
	// pgMaxReaders is how many connections read at a time. There is one that writes and
	// one that listens, too.
	pgMaxReaders = 4
)

// OpenPostgres opens the database at an address in the background. In the data
// directory is which instance it is.
func OpenPostgres(address, dir string, logger *slog.Logger) (*Postgres, error) {
	return openPostgres(address, dir, logger, pgReconnectWait)
}

func openPostgres(address, dir string, logger *slog.Logger, patience time.Duration) (*Postgres, error) {
	config, err := newPgConfig(address)
	if err != nil {
		return nil, err
	}
	name, err := loadInstanceName(dir)
	if err != nil {
		return nil, fmt.Errorf("which instance this is: %w", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &Postgres{
		config: config, name: name, logger: logger, clock: steadyClock{time.Now, time.Now()}, stop: stop, reconnectWait: patience,
		done: make(chan struct{}), openState: newOpenState[pgEngine](), remoteChanges: remoteChangeInbox{signal: make(chan struct{}, 1)},
	}
	db.pgDecisionStore.db, db.pgChainStore.db = db, db
	go db.keepOpen(ctx)
	return db, nil
}

// InstanceName is that of the instance.
func (db *Postgres) InstanceName() string { return db.name }

// keepOpen opens the database, and again whenever it has been away.
func (db *Postgres) keepOpen(ctx context.Context) {
	defer close(db.done)
	for wait, before := minOpenDelay, false; ; {
		e, err := openPgEngine(ctx, db)
		if err == nil {
			if before {
				db.logger.Info("the database is there again")
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
			db.logger.Error("the database is away", "host", db.config.Host, "error", oneLineError{err})
		}
		if !sleepContext(ctx, wait) {
			db.setState(nil, errClosed)
			return
		}
		wait = min(2*wait, pgMaxRetryDelay)
	}
}

// setState says what the database is now.
func (db *Postgres) setState(e *pgEngine, err error) {
	if err != nil {
		err = fmt.Errorf("the database is away: %w", oneLineError{err})
	}
	db.openState.setState(e, err)
}

// oneLineError is an error whose text tells each thing once, on one line.
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

// waitOpen returns the connections to the database. Those that have ended are waited for: a server
// that is slow, or is started again, must not refuse what it can answer soon.
func (db *Postgres) waitOpen(ctx context.Context) (*pgEngine, error) {
	for {
		e, changed, err := db.current()
		if e != nil && e.live().Err() == nil {
			return e, nil
		}
		var patience <-chan time.Time
		if e == nil && err != nil {
			left := db.reconnectWait - db.timeSinceOpen()
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

// HealthError returns why the database is not well; nil when it is, or is not known yet. It waits
// for nothing.
func (db *Postgres) HealthError() error {
	_, _, err := db.current()
	if at := db.pingSentAt.Load(); err == nil && at != 0 {
		if silent := time.Since(time.Unix(0, at)); silent >= pgSlowAfter {
			return fmt.Errorf("the database %s has not answered for %v", db.config.Host, silent.Round(100*time.Millisecond))
		}
	}
	return err
}

// CheckFiles does nothing: the server looks after its files.
func (db *Postgres) CheckFiles() {}

// ReopenSignal never tells anything: what is stored is the truth for all instances, and
// nobody stores it again.
func (db *Postgres) ReopenSignal() <-chan struct{} { return nil }

// Count returns how many records there are, as of less than a second ago.
func (db *Postgres) Count() int64 { return db.recordCount.Load() }

// Close closes the database.
func (db *Postgres) Close() error {
	db.stop()
	<-db.done
	return nil
}

// readChunksUpTo runs fn with a connection that reads.
func (db *Postgres) withReadConn(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.withReadConn(ctx, func(ctx context.Context, c *pgConn) error { return fn(ctx, e, c) })
}

// readSnapshot runs fn in a transaction that sees everything as it is at one time.
func (db *Postgres) readSnapshot(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	return db.withReadConn(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		return c.runTx(ctx, beginRead, func() error { return fn(ctx, e, c) })
	})
}

// withWriteConn runs fn in a transaction of the connection that writes.
func (db *Postgres) writeTx(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	for {
		e, err := db.waitOpen(ctx)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err = e.withWriteConn(func(ctx context.Context, c *pgConn) error {
			return c.runTx(ctx, beginWrite, func() error { return fn(ctx, e, c) })
		})
		if !errors.Is(err, errTxNotStarted) {
			return err
		}
	}
}

// RemoteChangeSignal tells that TakeRemoteChanges has something.
func (db *Postgres) RemoteChangeSignal() <-chan struct{} { return db.remoteChanges.signal }

// TakeRemoteChanges returns what other instances have stored since it was called last.
func (db *Postgres) TakeRemoteChanges() RemoteChanges {
	db.remoteChanges.mu.Lock()
	defer db.remoteChanges.mu.Unlock()
	all := db.remoteChanges.pending
	db.remoteChanges.pending = RemoteChanges{}
	return all
}

// pgEngine is the connections to a database that is there. When one of them shows that
// it is not any more, all are closed, and others are opened.
type pgEngine struct {
	db       *Postgres
	instance int64
	live     func() context.Context // ends with the engine
	cancel   context.CancelCauseFunc

	writing  sync.Mutex // one transaction at a time; guards what follows
	writer   *pgConn
	hashes   hashCache
	resumed  bool
	position pgSpoolPosition // where the projector has left the database
	// upgraded is the last segment that has prefixes for sure, while not all have.
	prefixedUpTo pgSegmentID

	listener    *pgConn
	agePruning  agePruneLimiter // of Tidy alone
	allPrefixed atomic.Bool     // every segment has prefixes, or another instance is about to write them

	readSlots   chan struct{} // for those who read
	idleReaders chan *pgConn  // connections that read, and that nobody has
	openReaders atomic.Int64  // all that read
}

// errTxNotStarted is connections that had ended before a transaction began.
var errTxNotStarted = fmt.Errorf("%w, nothing was written", activity.ErrAgain)

// pgSpoolPosition is a place of the spool.
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
	ctx, cancel := context.WithTimeout(e.live(), time.Minute) // migrations may have to wait for those of others
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
	return e.pingServer(ctx)
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
	return &pgConn{PgConn: c, prepared: map[string]string{}}, nil
}

// close closes all that nobody uses at this time.
func (e *pgEngine) close() {
	e.cancel(errClosed)
	e.writing.Lock()
	defer e.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, c := range []*pgConn{e.writer, e.listener} {
		if c != nil {
			_ = c.Close(ctx) // it is gone, or about to be
		}
	}
	e.closeIdleReaders(ctx)
	for range pgMaxReaders { // those who read are about to be told
		e.readSlots <- struct{}{}
	}
}

// listenUntilLost listens until the database is away, or ctx ends. It returns why.
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
		if err := e.pingServer(e.live()); err != nil {
			return err
		}
	}
}

// pingServer asks whether the server is there, and how many records there are.
func (e *pgEngine) pingServer(ctx context.Context) error {
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

// endIfConnLost ends the engine when a connection shows that the database is away.
func (e *pgEngine) endIfConnLost(c *pgConn, err error) error {
	if err != nil && c.IsClosed() {
		e.cancel(err)
		return fmt.Errorf("%w: %w", activity.ErrAgain, err)
	}
	return err
}

// withWriteConn runs fn with the connection that writes. It does not end with who asks: a
// transaction is short, and one that is cut off costs the connection.
func (e *pgEngine) withWriteConn(fn func(ctx context.Context, c *pgConn) error) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.live().Err(); err != nil {
		return fmt.Errorf("%w: %w", errTxNotStarted, context.Cause(e.live()))
	}
	return e.endIfConnLost(e.writer, fn(e.live(), e.writer))
}

// readChunksUpTo runs fn with a connection that reads, when there is one.
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
	e.closeIdleReaders(e.live()) // the server may have ended those, too
	if err != nil {
		err = fmt.Errorf("%w: %w", activity.ErrAgain, err)
	}
	return err
}

// endedError is why the connections have ended.
func (e *pgEngine) endedError() error {
	return fmt.Errorf("%w: %w", activity.ErrAgain, context.Cause(e.live()))
}

// closeIdleReaders closes the connections that nobody has.
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

// takeLeaseCall returns a connection that nobody has, or a new one. Where the server takes no more, it
// waits for one of those that there are.
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
