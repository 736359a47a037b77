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

// sqliteEngine is one open SQLite file: its connections and the in-memory index. When the file is opened again, a new
// sqliteEngine is created.
type sqliteEngine struct {
	path   string
	now    func() time.Time
	writes *sql.DB
	reads  *sql.DB
	// suspected receives the first failure after which the file must be checked.
	suspected   chan error
	openedFiles fileIdentity // identities of the files when they were opened
	resumed     atomic.Bool  // whether ResumePosition has read the position

	tidying    sync.Mutex // held by Tidy while it decides and removes; guards the field below
	agePruning agePruneLimiter

	writing     sync.Mutex // one transaction at a time; guards the fields below
	writeConn   *sqliteWriteConn
	hashes      hashCache
	indexStale  bool             // the index may differ from the database
	refusalKeys map[string]int64 // keys of recent refusals by record ID

	mu      sync.RWMutex // guards the fields below, which change only while writing is held
	index   activityIndex
	toolUse toolUseCounts // nil until ToolUse is called
}

// openSQLiteEngine opens the file and loads the index.
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
		path: path, now: now, writes: write, hashes: hashCache{}, refusalKeys: map[string]int64{},
		suspected: make(chan error, 1),
	}
	if err := e.migrateAndLoad(ctx); err != nil {
		return nil, errors.Join(e.addDamageIfSchemaDiffers(ctx, err), e.close())
	}
	return e, nil
}

func (e *sqliteEngine) migrateAndLoad(ctx context.Context) error {
	if err := migrateSQLite(ctx, e.writes); err != nil {
		return err
	}
	if err := recordEarlierDatabase(ctx, e.writes, e.path); err != nil {
		return err
	}
	var err error
	if e.reads, err = openPool(e.path, sqliteReaders, "query_only(1)"); err != nil {
		return err
	}
	if e.writeConn, err = openWriteConn(ctx, e.writes); err != nil {
		return err
	}
	// With this setting, erased values do not remain in free pages.
	if err := e.writeConn.exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	if err := e.capResultExpiry(); err != nil {
		return err
	}
	if e.openedFiles, err = statDatabaseFiles(e.path); err != nil {
		return err
	}
	if err := e.addMissingColumns(ctx); err != nil {
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

// fileIdentity identifies the database file and its WAL. It is used to detect that they were replaced.
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
