package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

//go:embed migrations
var migrations embed.FS

// applicationID marks the file as ours ("MCPX").
const applicationID = 0x4d435058

const readers = 3

// The primary result codes of SQLite that say what the file is.
const (
	codeCorrupt = 11
	codeNotADB  = 26
	codePrimary = 0xff
)

// errForeign is a database that another program has made.
var errForeign = errors.New("the file is a database of another program")

func isCorrupt(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & codePrimary {
		case codeCorrupt, codeNotADB:
			return true
		}
	}
	return errors.Is(err, errForeign) || errors.Is(err, errDamaged)
}

// errDamaged is what SQLite does not notice: the rows cannot be right.
var errDamaged = errors.New("the database is damaged")

// connect opens a pool. The file must exist.
func connect(path string, size int, pragmas ...string) (*sql.DB, error) {
	if path = filepath.ToSlash(path); filepath.VolumeName(path) != "" {
		path = "/" + path
	}
	q := url.Values{}
	for _, p := range append([]string{"busy_timeout(5000)", "foreign_keys(1)", "temp_store(MEMORY)"}, pragmas...) {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// prepareFile makes the file, readable for its owner only. SQLite gives the
// files beside it the same mode.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// migrate brings the schema up to date, each step in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB) error {
	if err := checkOwner(ctx, db); err != nil {
		return err
	}
	dir, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	known := p.ListSources()
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if newest := known[len(known)-1].Version; have > newest {
		return fmt.Errorf("the database has version %d, this program knows up to %d: use the newer MCPProxy that wrote it", have, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	return nil
}

// checkOwner marks a new file as ours and refuses one that is not.
func checkOwner(ctx context.Context, db *sql.DB) error {
	var id, tables int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	switch {
	case id == applicationID:
		return nil
	case id != 0 || tables > 0:
		return errForeign
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	return err
}

// openEngine opens the file and reads what is kept in memory of it.
func openEngine(ctx context.Context, path string, now func() time.Time) (*engine, error) {
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	write, err := connect(path, 1, "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(16384)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, err
	}
	e := &engine{path: path, now: now, writes: write, hashes: map[string]uint64{}}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(err, e.close())
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
