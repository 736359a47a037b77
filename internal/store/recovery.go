package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// SQLite reports damage not only for a damaged file, but also when a healthy disk fails for a moment. So a single
// report is not enough: the database is closed, opened again, read completely and checked, with growing pauses. A file
// that passes one check stays in use. A file is renamed and replaced only if all checks in a row find it damaged,
// without a disk error between them.

const (
	// maxDamagedChecks is the number of consecutive checks that must find a file damaged before it is replaced. With
	// their pauses, they take about four seconds.
	maxDamagedChecks = 5
	// maxDamagedRowErrors is the number of errors about invalid rows after which a file counts as damaged, even if the
	// integrity check passes.
	maxDamagedRowErrors = 3
)

// blockWritesOnDamage returns err. If err means damage or an I/O error, it blocks writes until the file was checked.
// After an I/O error, queries continue, because a disk that cannot write may still be readable.
func (db *SQLite) blockWritesOnDamage(e *sqliteEngine, err error) error {
	corrupt := isCorruptionError(err)
	err = wrapDiskError(err)
	if err == nil || !corrupt && sqliteErrorCode(err) != codeIOErr {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.engine != e || db.writeErr != nil {
		return err
	}
	db.logger.Warn("the database has failed and is checked before it is used again", "error", err)
	db.writeErr = fmt.Errorf("the database is being checked: %w", err)
	if corrupt {
		db.engine, db.err = nil, db.writeErr
	}
	if errors.Is(err, errDamaged) {
		db.damagedRowErrors++
	}
	e.suspected <- err // sent at most once for each engine
	return err
}

// waitUntilDamageSuspected waits until the file is suspected to be damaged. It returns the reason, or nil if ctx ends.
// If only writes fail, it waits until the disk works again, so that queries continue in the meantime.
func (db *SQLite) waitUntilDamageSuspected(ctx context.Context, e *sqliteEngine) error {
	var why error
	select {
	case <-ctx.Done():
		db.setState(nil, errClosed)
		return nil
	case why = <-e.suspected:
	}
	for wait := db.firstRetryDelay; errors.Is(why, errDeleted); wait = min(2*wait, maxOpenDelay) {
		db.setState(nil, why) // nothing may rely on the database until the file exists again
		err := e.writeReplacementFile()
		if err == nil {
			break
		}
		db.logger.Error("the database was deleted and cannot be written again", "error", err)
		if !sleepContext(ctx, wait) {
			db.setState(nil, errClosed)
			return nil
		}
	}
	if sqliteErrorCode(why) == codeIOErr {
		for wait := db.firstRetryDelay; !db.ensureWritable(e) && sleepContext(ctx, wait); {
			wait = min(2*wait, maxOpenDelay)
		}
	}
	db.setState(nil, fmt.Errorf("the database is being checked: %v", why)) // the disk works again
	return why
}

// ensureWritable reports whether the file can be written again. If the file is missing, it first writes a copy of the
// open database. Otherwise a new, empty database would look like a first start.
func (db *SQLite) ensureWritable(e *sqliteEngine) bool {
	err := checkWritable(db.path)
	if errors.Is(err, os.ErrNotExist) {
		err = e.writeReplacementFile()
	}
	return err == nil
}

// checkWritable opens the file for writing and syncs it.
func checkWritable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sleepContext waits for d. It returns false if ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// damageExamination is the state of the checks of a file.
type damageExamination struct {
	suspicion          error // why the file may be damaged; nil if there is no suspicion
	consecutiveDamaged int   // number of consecutive checks that found damage
	retryDelay         time.Duration
}

// countDamage counts the result of a check. It reports whether the file now counts as damaged.
func (x *damageExamination) countDamage(err error) (damaged bool) {
	if !isCorruptionError(err) {
		x.consecutiveDamaged = 0
		return false
	}
	x.suspicion, x.consecutiveDamaged = err, x.consecutiveDamaged+1
	return x.consecutiveDamaged >= maxDamagedChecks
}

// openWithRetries opens the database, and retries until it succeeds. It returns nil if ctx ends. It renames a damaged
// file and creates a new one.
func (db *SQLite) openWithRetries(ctx context.Context, x *damageExamination) *sqliteEngine {
	for {
		e, err := db.openAndCheck(ctx, x)
		if err == nil {
			return e
		}
		if ctx.Err() != nil {
			return nil
		}
		if x.countDamage(err) {
			if err = db.putDamagedFileAside(err); err == nil {
				*x = damageExamination{retryDelay: db.firstRetryDelay}
				continue
			}
		}
		db.logger.Error("the database cannot be opened", "path", db.path, "look", x.consecutiveDamaged, "error", err)
		db.setState(nil, err)
		if !sleepContext(ctx, x.retryDelay) {
			return nil
		}
		x.retryDelay = min(2*x.retryDelay, maxOpenDelay)
	}
}

// openAndCheck opens the database. If the file is suspected to be damaged, it checks the file first.
func (db *SQLite) openAndCheck(ctx context.Context, x *damageExamination) (*sqliteEngine, error) {
	if x.suspicion == nil {
		return openSQLiteEngine(ctx, db.path, db.clock.steadyNow)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := checkReadable(db.path + suffix); err != nil {
			return nil, err
		}
	}
	e, err := openSQLiteEngine(ctx, db.path, db.clock.steadyNow)
	if err != nil {
		return nil, err
	}
	err = e.checkIntegrity(ctx)
	db.mu.Lock()
	if err == nil && db.damagedRowErrors >= maxDamagedRowErrors { // the check finds no damage, but the errors recur
		err = x.suspicion
	}
	db.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// addDamageIfSchemaDiffers adds errDamaged to a statement error if the tables differ from those that the migrations
// create.
func (e *sqliteEngine) addDamageIfSchemaDiffers(ctx context.Context, err error) error {
	if sqliteErrorCode(err) != codeStatementError {
		return err
	}
	db := e.writes
	if e.reads != nil {
		db = e.reads // the pool for writes has only one connection, which is in use
	}
	is, isErr := readSchema(ctx, db)
	should, shouldErr := expectedSchema(ctx)
	if isErr == nil && shouldErr == nil && is != should {
		return fmt.Errorf("%w: its tables are not those of its version: %w", errDamaged, err)
	}
	return err
}

// expectedSchema returns the schema that a new database has.
func expectedSchema(ctx context.Context) (text string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrateSQLite(ctx, db); err != nil {
		return "", err
	}
	return readSchema(ctx, db)
}

// readSchema returns the SQL of all tables of a database.
func readSchema(ctx context.Context, db *sql.DB) (text string, err error) {
	err = db.QueryRowContext(ctx, "SELECT group_concat(name || char(10) || coalesce(sql, ''), char(10)) FROM (SELECT name, sql FROM sqlite_master ORDER BY name)").Scan(&text)
	return text, err
}

// checkReadable reads a whole file. A missing file is not an error.
func checkReadable(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}

// checkIntegrity reads the whole database, and checks its pages and approvals.
func (e *sqliteEngine) checkIntegrity(ctx context.Context) error {
	var said string
	if err := e.reads.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	_, err := readApprovals(ctx, sqliteReader{e.reads})
	return e.addDamageIfSchemaDiffers(ctx, err)
}

// putDamagedFileAside renames a damaged file, so that it is kept.
func (db *SQLite) putDamagedFileAside(why error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.filesPutAside++; db.filesPutAside > maxFilesPutAside {
		return fmt.Errorf("the database was damaged %d times; check the disk: %w", db.filesPutAside, why)
	}
	aside, err := renameAside(db.path, "corrupt", db.clock.now())
	if err != nil {
		return fmt.Errorf("move a damaged database away: %w", err)
	}
	db.damagedRowErrors = 0
	db.logger.Error("the database is damaged; it was moved away and a new one is created",
		"error", why, "looks", maxDamagedChecks, "aside", aside)
	db.pendingNotes = append(db.pendingNotes, fmt.Sprintf(
		"The database was damaged and is kept as %s; a new one was created. It has the records that are still in the spool, the damaged file has the older ones.",
		filepath.Base(aside)))
	return nil
}

// keepOpen opens the database, and reopens it after each failure, until ctx ends.
func (db *SQLite) keepOpen(ctx context.Context) {
	defer close(db.done)
	x := damageExamination{retryDelay: db.firstRetryDelay}
	for before := false; ; before = true {
		e := db.openWithRetries(ctx, &x)
		if e == nil {
			db.setState(nil, errClosed)
			return
		}
		x = damageExamination{retryDelay: db.firstRetryDelay}
		db.setState(e, nil)
		if before {
			select {
			case db.reopened <- struct{}{}:
			default:
			}
		}
		x.suspicion = db.waitUntilDamageSuspected(ctx, e)
		if err := e.close(); err != nil {
			db.logger.Warn("the database was not closed cleanly", "error", err)
		}
		if x.suspicion == nil {
			return
		}
	}
}
