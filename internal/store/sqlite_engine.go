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

// sqliteEngine is an open database.
type sqliteEngine struct {
	path   string
	now    func() time.Time
	writes *sql.DB
	reads  *sql.DB
	// suspected has the first failure after which the file is to be looked at.
	suspected   chan error
	openedFiles fileIdentity // as they were opened
	resumed     atomic.Bool  // it was asked how far it is

	tidying      sync.Mutex // held from what Tidy decides to what it removes by that; guards what follows
	agePruning   agePruneLimiter
	prefixedUpTo int64 // the last segment that has prefixes for sure; maxKey: all have

	writing     sync.Mutex // one transaction at a time; guards what follows
	writeConn   *sqliteWriteConn
	hashes      hashCache
	indexStale  bool             // index may not be what is in the file
	refusalKeys map[string]int64 // keys of the latest refusals, by id, to find them fast

	mu      sync.RWMutex // guards what follows; changed only with writing held
	index   activityIndex
	toolUse toolUseCounts // nil: nobody has asked yet
}

// openSQLiteEngine opens the file and reads what is kept in memory of it.
func openSQLiteEngine(ctx context.Context, path string, now func() time.Time) (*sqliteEngine, error) {
	if err := installRewrittenFile(path, now()); err != nil {
		return nil, err
	}
	if err := createPrivateFile(path); err != nil {
		return nil, err
	}
	write, err := openPool(path, 1, "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(16384)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, err
	}
	e := &sqliteEngine{
		path: path, now: now, prefixedUpTo: -1, writes: write, hashes: hashCache{}, refusalKeys: map[string]int64{},
		suspected: make(chan error, 1),
	}
	if err := e.migrateAndLoad(ctx); err != nil {
		return nil, errors.Join(e.explainSchemaError(ctx, err), e.close())
	}
	return e, nil
}

func (e *sqliteEngine) migrateAndLoad(ctx context.Context) error {
	if err := migrateSQLite(ctx, e.writes); err != nil {
		return err
	}
	if err := recordOrigin(ctx, e.writes, e.path); err != nil {
		return err
	}
	var err error
	if e.reads, err = openPool(e.path, sqliteReaders, "query_only(1)"); err != nil {
		return err
	}
	if e.writeConn, err = openWriteConn(ctx, e.writes); err != nil {
		return err
	}
	// What is erased must not stay in pages that are free.
	if err := e.writeConn.exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	if err := e.capResultExpiry(); err != nil {
		return err
	}
	if e.openedFiles, err = statDatabaseFiles(e.path); err != nil {
		return err
	}
	return e.loadIndex(ctx)
}

func (e *sqliteEngine) close() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	var errs []error
	if e.writeConn != nil {
		errs = append(errs, e.writeConn.close())
	}
	if e.reads != nil {
		errs = append(errs, e.reads.Close())
	}
	return errors.Join(append(errs, e.writes.Close())...)
}

// fileIdentity is what the files are whose names SQLite has opened.
type fileIdentity []os.FileInfo

func statDatabaseFiles(path string) (fileIdentity, error) {
	var id fileIdentity
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		id = append(id, info)
	}
	return id, nil
}
