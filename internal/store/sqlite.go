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
	_ "modernc.org/sqlite" // the driver

	"mcpproxy/internal/ondisk"
)

//go:embed migrations
var migrationFiles embed.FS

// applicationID marks a database file as one of MCPProxy ("MCPX").
const applicationID = 0x4d435058

const sqliteReaders = 3

// openPool opens a pool of connections. The database file must exist.
func openPool(path string, size int, pragmas ...string) (*sql.DB, error) {
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

// createPrivateFile creates the file so that only its owner can read it. SQLite creates the files next to it with the
// same mode.
func createPrivateFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// migrateSQLite updates the schema to the newest version, each step in a separate transaction.
func migrateSQLite(ctx context.Context, db *sql.DB) error {
	if err := claimApplicationID(ctx, db); err != nil {
		return err
	}
	if err := checkVersionTable(ctx, db); err != nil {
		return err
	}
	p, err := newMigrationProvider(db)
	if err != nil {
		return err
	}
	known := p.ListSources()
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if newest := known[len(known)-1].Version; have > newest {
		return fmt.Errorf("the database has version %d, this program supports up to %d: use the newer MCPProxy that wrote it", have, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	return nil
}

// newMigrationProvider returns the migrations of the schema.
func newMigrationProvider(db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(migrationFiles, "migrations/sqlite")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
}

// checkVersionTable returns an error if the table of versions is unreadable. goose would treat such a table as missing
// and try for seconds to create it.
func checkVersionTable(ctx context.Context, db *sql.DB) error {
	var tables, rows int64
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'").Scan(&tables)
	if err == nil && tables > 0 {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM goose_db_version").Scan(&rows)
	}
	return err
}

// claimApplicationID marks a new file as one of MCPProxy, and rejects a database of another program.
func claimApplicationID(ctx context.Context, db *sql.DB) error {
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

// installRewrittenFile moves a rewritten database (path.again) to path. It renames the existing file at path. No
// process may have the files open.
func installRewrittenFile(path string, now time.Time) error {
	again := path + ".again"
	if _, err := os.Stat(again); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if _, err := renameAside(path, "replaced", now); err != nil {
		return err
	}
	if err := os.Rename(again, path); err != nil {
		return err
	}
	_ = ondisk.SyncDir(filepath.Dir(path)) // some systems cannot sync a directory
	return nil
}

// renameAside renames the files of a database that no process has open. It renames the main file last, because a WAL
// next to a new database would be used as part of that database.
func renameAside(path, why string, now time.Time) (aside string, err error) {
	aside = fmt.Sprintf("%s.%s-%s", path, why, now.UTC().Format("20060102T150405.000"))
	for _, suffix := range []string{"-shm", "-wal", ""} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}

// recordEarlierDatabase stores, once for each database, whether this directory contained an earlier one. A marker file
// shows this, even if the earlier database was renamed, truncated or removed.
func recordEarlierDatabase(ctx context.Context, db *sql.DB, path string) error {
	mark := filepath.Join(filepath.Dir(path), earlierDatabaseMarker)
	_, err := os.Stat(mark)
	before := err == nil
	if !before && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for an earlier database: %w", err)
	}
	if _, err := db.ExecContext(ctx, "INSERT OR IGNORE INTO approval_origin (id, lost) VALUES (1, ?)", before); err != nil {
		return err
	}
	if before {
		return nil
	}
	return createPrivateFile(mark)
}

// earlierDatabaseMarker is a file next to the database. It means that a database was created in this directory. Its
// name does not begin with the name of the database, so that removing mcpproxy.db* does not delete it.
const earlierDatabaseMarker = "approvals.begun"
