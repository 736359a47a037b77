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
	pgDecisions
	pgProofs
	config *pgconn.Config
	name   string // of the instance
	logger *slog.Logger
	clock  clock
	stop   context.CancelFunc
	done   chan struct{}
	// patience is pgPatience, but in tests.
	patience time.Duration
	count    atomic.Int64
	asked    atomic.Int64 // when the server was asked whether it is there; 0: it has answered
	news     pgNews
	opened[pgEngine]
}

// pgProofs is what a Postgres does so that its records can be proven, and erased.
type pgProofs struct{ db *Postgres }

// pgDecisions is what is decided, for all instances.
type pgDecisions struct {
	db *Postgres

	mu   sync.Mutex // guards what follows
	seen int64      // the version of the decisions that was loaded last
}

const (
	// pgPing is how often the server is asked whether it is there, and pgSlow after what
	// time without an answer that is said.
	pgPing = 400 * time.Millisecond
	pgSlow = 500 * time.Millisecond
	// pgPatience is how long everything waits for new connections after the old ones have ended.
	pgPatience = 10 * time.Second
	// pgAgain is how long is waited at most before the next try to connect.
	pgAgain = time.Second
	// pgReaders is how many connections read at a time. There is one that writes and
	// one that listens, too.
	pgReaders = 4
)

// OpenPostgres opens the database at an address in the background. In the data
// directory is which instance it is.
func OpenPostgres(address, dir string, logger *slog.Logger) (*Postgres, error) {
	return openPostgres(address, dir, logger, pgPatience)
}

func openPostgres(address, dir string, logger *slog.Logger, patience time.Duration) (*Postgres, error) {
	config, err := pgConfig(address)
	if err != nil {
		return nil, err
	}
	name, err := instanceName(dir)
	if err != nil {
		return nil, fmt.Errorf("which instance this is: %w", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	db := &Postgres{
		config: config, name: name, logger: logger, clock: clock{time.Now, time.Now()}, stop: stop, patience: patience,
		done: make(chan struct{}), opened: notOpened[pgEngine](), news: pgNews{told: make(chan struct{}, 1)},
	}
	db.pgDecisions.db, db.pgProofs.db = db, db
	go db.keepOpen(ctx)
	return db, nil
}

// Name is that of the instance.
func (db *Postgres) Name() string { return db.name }

// keepOpen opens the database, and again whenever it has been away.
func (db *Postgres) keepOpen(ctx context.Context) {
	defer close(db.done)
	for wait, before := openFirst, false; ; {
		e, err := openPgEngine(ctx, db)
		if err == nil {
			if before {
				db.logger.Info("the database is there again")
			}
			db.set(e, nil)
			db.news.add(Shared{All: true})
			before, wait = true, openFirst
			err = e.serve(ctx)
			db.asked.Store(0)
			db.set(nil, err)
			e.close()
		} else {
			db.set(nil, err)
		}
		if ctx.Err() == nil {
			db.logger.Error("the database is away", "host", db.config.Host, "error", onOneLine{err})
		}
		if !sleep(ctx, wait) {
			db.set(nil, errClosed)
			return
		}
		wait = min(2*wait, pgAgain)
	}
}

// set says what the database is now.
func (db *Postgres) set(e *pgEngine, err error) {
	if err != nil {
		err = fmt.Errorf("the database is away: %w", onOneLine{err})
	}
	db.opened.set(e, err)
}

// onOneLine is an error whose text tells each thing once, on one line.
type onOneLine struct{ error }

func (e onOneLine) Error() string {
	var lines []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (e onOneLine) Unwrap() error { return e.error }

// use returns the connections to the database. Those that have ended are waited for: a server
// that is slow, or is started again, must not refuse what it can answer soon.
func (db *Postgres) use(ctx context.Context) (*pgEngine, error) {
	for {
		e, changed, err := db.now()
		if e != nil && e.live().Err() == nil {
			return e, nil
		}
		var patience <-chan time.Time
		if e == nil && err != nil {
			left := db.patience - db.away()
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

// Ill returns why the database is not well; nil when it is, or is not known yet. It waits
// for nothing.
func (db *Postgres) Ill() error {
	_, _, err := db.now()
	if at := db.asked.Load(); err == nil && at != 0 {
		if silent := time.Since(time.Unix(0, at)); silent >= pgSlow {
			return fmt.Errorf("the database %s has not answered for %v", db.config.Host, silent.Round(100*time.Millisecond))
		}
	}
	return err
}

// Look does nothing: the server looks after its files.
func (db *Postgres) Look() {}

// Reopened never tells anything: what is stored is the truth for all instances, and
// nobody stores it again.
func (db *Postgres) Reopened() <-chan struct{} { return nil }

// RecordCount returns how many records there are, as of less than a second ago.
func (db *Postgres) RecordCount() int64 { return db.count.Load() }

// Close closes the database.
func (db *Postgres) Close() error {
	db.stop()
	<-db.done
	return nil
}

// read runs fn with a connection that reads.
func (db *Postgres) read(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	e, err := db.use(ctx)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.read(ctx, func(ctx context.Context, c *pgConn) error { return fn(ctx, e, c) })
}

// view runs fn in a transaction that sees everything as it is at one time.
func (db *Postgres) view(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	return db.read(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		return c.tx(ctx, beginRead, func() error { return fn(ctx, e, c) })
	})
}

// write runs fn in a transaction of the connection that writes.
func (db *Postgres) write(ctx context.Context, fn func(ctx context.Context, e *pgEngine, c *pgConn) error) error {
	for {
		e, err := db.use(ctx)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err = e.write(func(ctx context.Context, c *pgConn) error {
			return c.tx(ctx, beginWrite, func() error { return fn(ctx, e, c) })
		})
		if !errors.Is(err, errNotRun) {
			return err
		}
	}
}

// Shared tells that TakeShared has something.
func (db *Postgres) Shared() <-chan struct{} { return db.news.told }

// TakeShared returns what other instances have stored since it was called last.
func (db *Postgres) TakeShared() Shared {
	db.news.mu.Lock()
	defer db.news.mu.Unlock()
	all := db.news.all
	db.news.all = Shared{}
	return all
}

// pgEngine is the connections to a database that is there. When one of them shows that
// it is not any more, all are closed, and others are opened.
type pgEngine struct {
	db       *Postgres
	instance int64
	live     func() context.Context // ends with the engine
	cancel   context.CancelCauseFunc

	writing sync.Mutex // one transaction at a time; guards what follows
	writer  *pgConn
	hashes  hashes
	resumed bool
	at      pgPlace // where the projector has left the database
	// upgraded is the last segment that has prefixes for sure, while not all have.
	upgraded pgSegment

	listener *pgConn
	pace     pace        // of Tidy alone
	prefixed atomic.Bool // every segment has prefixes, or another instance is about to write them

	places  chan struct{} // for those who read
	idle    chan *pgConn  // connections that read, and that nobody has
	readers atomic.Int64  // all that read
}

// errNotRun is connections that had ended before a transaction began.
var errNotRun = fmt.Errorf("%w, nothing was written", activity.ErrAgain)

// pgPlace is a place of the spool.
type pgPlace struct {
	chain string
	seq   int64
}

func openPgEngine(ctx context.Context, db *Postgres) (*pgEngine, error) {
	e := &pgEngine{db: db, hashes: hashes{}, places: make(chan struct{}, pgReaders), idle: make(chan *pgConn, pgReaders)}
	ctx, e.cancel = context.WithCancelCause(ctx)
	e.live = func() context.Context { return ctx }
	err := e.connect()
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *pgEngine) connect() (err error) {
	ctx, cancel := context.WithTimeout(e.live(), time.Minute) // migrations may have to wait for those of others
	defer cancel()
	if e.writer, err = e.dial(ctx); err != nil {
		return err
	}
	if err = pgMigrate(ctx, e.writer, e.db.config.RuntimeParams["search_path"]); err != nil {
		return err
	}
	host, _ := os.Hostname()
	_, err = e.writer.first(ctx, into{&e.instance}, `INSERT INTO instance (name, host) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET host = excluded.host, seen = now() RETURNING id`, e.db.name, pgClean(host))
	if err != nil {
		return err
	}
	reader, err := e.dial(ctx)
	if err != nil {
		return err
	}
	e.readers.Add(1)
	e.idle <- reader
	if e.listener, err = e.dial(ctx); err != nil {
		return err
	}
	if err = e.listener.run(ctx, "LISTEN "+pgChannel); err != nil {
		return err
	}
	return e.look(ctx)
}

func (e *pgEngine) dial(ctx context.Context) (*pgConn, error) {
	config := e.db.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if e.writer != nil && n.PID != e.writer.PID() {
			e.db.news.read(n.Payload)
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
	e.closeIdle(ctx)
	for range pgReaders { // those who read are about to be told
		e.places <- struct{}{}
	}
}

// serve listens until the database is away, or ctx ends. It returns why.
func (e *pgEngine) serve(ctx context.Context) error {
	for {
		wait, cancel := context.WithTimeout(e.live(), pgPing)
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
		if err := e.look(e.live()); err != nil {
			return err
		}
	}
}

// look asks whether the server is there, and how many records there are.
func (e *pgEngine) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pgGone)
	defer cancel()
	e.db.asked.Store(time.Now().UnixNano())
	var records, gone int64
	_, err := e.listener.first(ctx, into{&records, &gone}, `SELECT coalesce(sum(next_key - first_key), 0)::bigint,
		(SELECT coalesce(sum(bit_count(gone)), 0)::bigint FROM activity_chunk WHERE gone IS NOT NULL) FROM instance`)
	if err != nil {
		return err
	}
	e.db.asked.Store(0)
	e.db.count.Store(records - gone)
	return nil
}

// lost ends the engine when a connection shows that the database is away.
func (e *pgEngine) lost(c *pgConn, err error) error {
	if err != nil && c.IsClosed() {
		e.cancel(err)
		return fmt.Errorf("%w: %w", activity.ErrAgain, err)
	}
	return err
}

// write runs fn with the connection that writes. It does not end with who asks: a
// transaction is short, and one that is cut off costs the connection.
func (e *pgEngine) write(fn func(ctx context.Context, c *pgConn) error) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.live().Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotRun, context.Cause(e.live()))
	}
	return e.lost(e.writer, fn(e.live(), e.writer))
}

// read runs fn with a connection that reads, when there is one.
func (e *pgEngine) read(ctx context.Context, fn func(ctx context.Context, c *pgConn) error) error {
	select {
	case e.places <- struct{}{}:
	case <-e.live().Done():
		return e.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.places }()
	c, err := e.take(ctx)
	if err != nil {
		return err
	}
	err = fn(e.live(), c)
	if !c.IsClosed() && e.live().Err() == nil {
		e.idle <- c
		return err
	}
	_ = c.Close(e.live())
	e.readers.Add(-1)
	e.closeIdle(e.live()) // the server may have ended those, too
	if err != nil {
		err = fmt.Errorf("%w: %w", activity.ErrAgain, err)
	}
	return err
}

// ended is why the connections have ended.
func (e *pgEngine) ended() error {
	return fmt.Errorf("%w: %w", activity.ErrAgain, context.Cause(e.live()))
}

// closeIdle closes the connections that nobody has.
func (e *pgEngine) closeIdle(ctx context.Context) {
	for {
		select {
		case c := <-e.idle:
			_ = c.Close(ctx)
			e.readers.Add(-1)
		default:
			return
		}
	}
}

// take returns a connection that nobody has, or a new one. Where the server takes no more, it
// waits for one of those that there are.
func (e *pgEngine) take(ctx context.Context) (*pgConn, error) {
	select {
	case c := <-e.idle:
		return c, nil
	default:
	}
	c, err := e.dial(e.live())
	if err == nil {
		e.readers.Add(1)
		return c, nil
	}
	if e.live().Err() != nil {
		return nil, e.ended()
	}
	err = errors.Join(errors.New("no connection to the database is free"), err)
	if e.readers.Load() == 0 {
		return nil, err
	}
	select {
	case c := <-e.idle:
		return c, nil
	case <-e.live().Done():
		return nil, e.ended()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(e.db.patience):
		return nil, err
	}
}
