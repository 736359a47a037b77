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

// SQLite says that a file is damaged when it is, and also when a healthy disk
// fails for a moment. So nothing that is said once decides: the database is
// closed, opened anew, read as a whole and checked, with pauses that grow. A
// file that is well once is gone on with. Only one that is damaged every time,
// without an error of the disk in between, is put aside.

const (
	// maxDamagedChecks is how often in a row a file is found damaged before it is put
	// aside. With the pauses between them that takes about four seconds.
	maxDamagedChecks = 5
	// maxDamagedRowErrors is how often rows of a file that is well by itself cannot be right
	// before that counts as damage.
	maxDamagedRowErrors = 3
)

// failedHash looks at the error of something that writes. When that puts the file
// under suspicion, writing to it ends until it was looked at. What the disk
// fails to write it may still read, so queries go on then.
func (db *SQLite) blockWritesOnDamage(e *sqliteEngine, err error) error {
	corrupt := isCorrupt(err)
	err = wrapDiskError(err)
	if err == nil || !corrupt && sqliteCode(err) != codeIOErr {
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
	e.suspected <- err // the only one for this engine
	return err
}

// listenUntilLost waits until the engine is not to be used any more, and returns why; nil
// at the end of ctx. While only writing fails it waits for the disk, so that
// queries have what they can have.
func (db *SQLite) waitUntilSuspected(ctx context.Context, e *sqliteEngine) error {
	var why error
	select {
	case <-ctx.Done():
		db.setState(nil, errClosed)
		return nil
	case why = <-e.suspected:
	}
	for wait := db.firstRetryDelay; errors.Is(why, errDeleted); wait = min(2*wait, maxOpenDelay) {
		db.setState(nil, why) // until it stands there again, nothing more may depend on it
		err := e.rewriteFile()
		if err == nil {
			break
		}
		db.logger.Error("the database was deleted and cannot be written again", "error", err)
		if !sleepContext(ctx, wait) {
			db.setState(nil, errClosed)
			return nil
		}
	}
	if sqliteCode(why) == codeIOErr {
		for wait := db.firstRetryDelay; !db.isWritable(e) && sleepContext(ctx, wait); {
			wait = min(2*wait, maxOpenDelay)
		}
	}
	db.setState(nil, fmt.Errorf("the database is being checked: %v", why)) // the disk is well by now
	return why
}

// isWritable reports whether the disk takes what is written to the file again. When
// there is no file any more, what is open is written in its place: it must not
// look like a first one.
func (db *SQLite) isWritable(e *sqliteEngine) bool {
	err := checkWritable(db.path)
	if errors.Is(err, os.ErrNotExist) {
		err = e.rewriteFile()
	}
	return err == nil
}

// checkWritable tries whether the file can be opened for writing and synced.
func checkWritable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sleepContext waits, and reports whether ctx goes on.
func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// damageExamination is how far the looks at a file are.
type damageExamination struct {
	suspicion     error // that it is suspected; nil for a file that is not
	damagedInARow int   // in a row that found it damaged
	retryDelay    time.Duration
}

// filesContaining counts what a look has found, and reports whether the file counts as
// damaged now.
func (x *damageExamination) countDamage(err error) (damaged bool) {
	if !isCorrupt(err) {
		x.damagedInARow = 0
		return false
	}
	x.suspicion, x.damagedInARow = err, x.damagedInARow+1
	return x.damagedInARow >= maxDamagedChecks
}

// openWithRetries opens the database, as soon as that works; nil at the end of ctx. A
// file that is damaged at every look is put aside, and a new one made.
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
			if err = db.putFileAside(err); err == nil {
				*x = damageExamination{retryDelay: db.firstRetryDelay}
				continue
			}
		}
		db.logger.Error("the database cannot be opened", "path", db.path, "look", x.damagedInARow, "error", err)
		db.setState(nil, err)
		if !sleepContext(ctx, x.retryDelay) {
			return nil
		}
		x.retryDelay = min(2*x.retryDelay, maxOpenDelay)
	}
}

// pingServer opens the database, after a closer look when it is suspected.
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
	if err == nil && db.damagedRowErrors >= maxDamagedRowErrors { // though the check finds nothing
		err = x.suspicion
	}
	db.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// explainSchemaError looks for the reason of an error when a statement does not fit: the tables
// are not those that the migrations make.
func (e *sqliteEngine) explainSchemaError(ctx context.Context, err error) error {
	if sqliteCode(err) != codeStatementError {
		return err
	}
	db := e.writes
	if e.reads != nil {
		db = e.reads // the other has one connection, which is taken
	}
	is, isErr := readSchema(ctx, db)
	should, shouldErr := expectedSchema(ctx)
	if isErr == nil && shouldErr == nil && is != should {
		return fmt.Errorf("%w: its tables are not those of its version: %w", errDamaged, err)
	}
	return err
}

// expectedSchema is that of a database which is made now.
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

// readSchema is what the tables of a database are made with.
func readSchema(ctx context.Context, db *sql.DB) (text string, err error) {
	err = db.QueryRowContext(ctx, "SELECT group_concat(name || char(10) || coalesce(sql, ''), char(10)) FROM (SELECT name, sql FROM sqlite_master ORDER BY name)").Scan(&text)
	return text, err
}

// checkReadable reads a file to its end.
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

// checkIntegrity reads all of the database and holds it against itself.
func (e *sqliteEngine) checkIntegrity(ctx context.Context) error {
	var said string
	if err := e.reads.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	_, err := readApprovals(ctx, e.reads)
	return e.explainSchemaError(ctx, err)
}

// putFileAside moves a damaged file out of the way, for somebody to look at.
func (db *SQLite) putFileAside(why error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.filesPutAside++; db.filesPutAside > maxFilesPutAside {
		return fmt.Errorf("the database was damaged %d times; check the disk: %w", db.filesPutAside, why)
	}
	aside, err := renameAside(db.path, "corrupt", db.clock.now())
	if err != nil {
		return fmt.Errorf("put a damaged database aside: %w", err)
	}
	db.damagedRowErrors = 0
	db.logger.Error("the database is damaged; it was put aside and a new one is begun",
		"error", why, "looks", maxDamagedChecks, "aside", aside)
	db.pendingNotes = append(db.pendingNotes, fmt.Sprintf(
		"The database was damaged and is kept as %s; a new one was begun. It has the records that are still in the spool, the damaged file has the older ones.",
		filepath.Base(aside)))
	return nil
}

// keepOpen opens the database, and again whenever it has failed.
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
		x.suspicion = db.waitUntilSuspected(ctx, e)
		if err := e.close(); err != nil {
			db.logger.Warn("the database did not close well", "error", err)
		}
		if x.suspicion == nil {
			return
		}
	}
}
