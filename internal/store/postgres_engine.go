package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"mcpproxy/internal/store/activity"
)

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
