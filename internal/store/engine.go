package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// engine is an open database.
type engine struct {
	path   string
	now    func() time.Time
	writes *sql.DB
	reads  *sql.DB
	// suspected has the first failure after which the file is to be looked at.
	suspected chan error
	files     identity    // as they were opened
	resumed   atomic.Bool // it was asked how far it is

	tidying  sync.Mutex // held from what Tidy decides to what it removes by that; guards what follows
	pace     pace
	prefixed int64 // the last segment that has prefixes for sure; noCursor: all have

	writing sync.Mutex // one transaction at a time; guards what follows
	conn    *rawConn
	hashes  hashes
	stale   bool             // index may not be what is in the file
	refused map[string]int64 // keys of the latest refusals, by id, to find them fast

	mu    sync.RWMutex // guards what follows; changed only with writing held
	index index
	used  toolUse // nil: nobody has asked yet
}

// openEngine opens the file and reads what is kept in memory of it.
func openEngine(ctx context.Context, path string, now func() time.Time) (*engine, error) {
	if err := takeAgain(path, now()); err != nil {
		return nil, err
	}
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	write, err := connect(path, 1, "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(16384)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, err
	}
	e := &engine{
		path: path, now: now, prefixed: -1, writes: write, hashes: hashes{}, refused: map[string]int64{},
		suspected: make(chan error, 1),
	}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(e.blame(ctx, err), e.close())
	}
	return e, nil
}

func (e *engine) open(ctx context.Context) error {
	if err := migrate(ctx, e.writes); err != nil {
		return err
	}
	if err := noteOrigin(ctx, e.writes, e.path); err != nil {
		return err
	}
	var err error
	if e.reads, err = connect(e.path, readers, "query_only(1)"); err != nil {
		return err
	}
	if e.conn, err = openRaw(ctx, e.writes); err != nil {
		return err
	}
	// What is erased must not stay in pages that are free.
	if err := e.conn.exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	if err := e.shortenResults(); err != nil {
		return err
	}
	if e.files, err = identify(e.path); err != nil {
		return err
	}
	return e.load(ctx)
}

func (e *engine) close() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	var errs []error
	if e.conn != nil {
		errs = append(errs, e.conn.close())
	}
	if e.reads != nil {
		errs = append(errs, e.reads.Close())
	}
	return errors.Join(append(errs, e.writes.Close())...)
}

// identity is what the files are whose names SQLite has opened.
type identity []os.FileInfo

func identify(path string) (identity, error) {
	var id identity
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		id = append(id, info)
	}
	return id, nil
}
