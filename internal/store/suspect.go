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
	// maxLooks is how often in a row a file is found damaged before it is put
	// aside. With the pauses between them that takes about four seconds.
	maxLooks = 5
	// maxWrong is how often rows of a file that is well by itself cannot be right
	// before that counts as damage.
	maxWrong = 3
)

// failed looks at the error of something that writes. When that puts the file
// under suspicion, writing to it ends until it was looked at. What the disk
// fails to write it may still read, so queries go on then.
func (db *DB) failed(e *engine, err error) error {
	corrupt := isCorrupt(err)
	err = ofDisk(err)
	if err == nil || !corrupt && code(err) != codeIOErr {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.engine != e || db.halted != nil {
		return err
	}
	db.logger.Warn("the database has failed and is checked before it is used again", "error", err)
	db.halted = fmt.Errorf("the database is being checked: %w", err)
	if corrupt {
		db.engine, db.err = nil, db.halted
	}
	if errors.Is(err, errDamaged) {
		db.wrong++
	}
	e.suspected <- err // the only one for this engine
	return err
}

// serve waits until the engine is not to be used any more, and returns why; nil
// at the end of ctx. While only writing fails it waits for the disk, so that
// queries have what they can have.
func (db *DB) serve(ctx context.Context, e *engine) error {
	var why error
	select {
	case <-ctx.Done():
		db.set(nil, errClosed)
		return nil
	case why = <-e.suspected:
	}
	for wait := db.pause; errors.Is(why, errDeleted); wait = min(2*wait, openLast) {
		db.set(nil, why) // until it stands there again, nothing more may depend on it
		err := e.writeAgain()
		if err == nil {
			break
		}
		db.logger.Error("the database was deleted and cannot be written again", "error", err)
		if !sleep(ctx, wait) {
			db.set(nil, errClosed)
			return nil
		}
	}
	if code(why) == codeIOErr {
		for wait := db.pause; !db.usable(e) && sleep(ctx, wait); {
			wait = min(2*wait, openLast)
		}
	}
	db.set(nil, fmt.Errorf("the database is being checked: %v", why)) // the disk is well by now
	return why
}

// usable reports whether the disk takes what is written to the file again. When
// there is no file any more, what is open is written in its place: it must not
// look like a first one.
func (db *DB) usable(e *engine) bool {
	err := touch(db.path)
	if errors.Is(err, os.ErrNotExist) {
		err = e.writeAgain()
	}
	return err == nil
}

// touch tries whether the file can be opened for writing and synced.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// examination is how far the looks at a file are.
type examination struct {
	why   error // that it is suspected; nil for a file that is not
	looks int   // in a row that found it damaged
	wait  time.Duration
}

// found counts what a look has found, and reports whether the file counts as
// damaged now.
func (x *examination) found(err error) (damaged bool) {
	if !isCorrupt(err) {
		x.looks = 0
		return false
	}
	x.why, x.looks = err, x.looks+1
	return x.looks >= maxLooks
}

// openSoon opens the database, as soon as that works; nil at the end of ctx. A
// file that is damaged at every look is put aside, and a new one made.
func (db *DB) openSoon(ctx context.Context, x *examination) *engine {
	for {
		e, err := db.look(ctx, x)
		if err == nil {
			return e
		}
		if ctx.Err() != nil {
			return nil
		}
		if x.found(err) {
			if err = db.putAside(err); err == nil {
				*x = examination{wait: db.pause}
				continue
			}
		}
		db.logger.Error("the database cannot be opened", "path", db.path, "look", x.looks, "error", err)
		db.set(nil, err)
		if !sleep(ctx, x.wait) {
			return nil
		}
		x.wait = min(2*x.wait, openLast)
	}
}

// look opens the database, after a closer look when it is suspected.
func (db *DB) look(ctx context.Context, x *examination) (*engine, error) {
	if x.why == nil {
		return openEngine(ctx, db.path, db.clock.evenly)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := readable(db.path + suffix); err != nil {
			return nil, err
		}
	}
	e, err := openEngine(ctx, db.path, db.clock.evenly)
	if err != nil {
		return nil, err
	}
	err = e.check(ctx)
	db.mu.Lock()
	if err == nil && db.wrong >= maxWrong { // though the check finds nothing
		err = x.why
	}
	db.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// blame looks for the reason of an error when a statement does not fit: the tables
// are not those that the migrations make.
func (e *engine) blame(ctx context.Context, err error) error {
	if code(err) != codeError {
		return err
	}
	db := e.writes
	if e.reads != nil {
		db = e.reads // the other has one connection, which is taken
	}
	is, isErr := schema(ctx, db)
	should, shouldErr := freshSchema(ctx)
	if isErr == nil && shouldErr == nil && is != should {
		return fmt.Errorf("%w: its tables are not those of its version: %w", errDamaged, err)
	}
	return err
}

// freshSchema is that of a database which is made now.
func freshSchema(ctx context.Context) (text string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrate(ctx, db); err != nil {
		return "", err
	}
	return schema(ctx, db)
}

// schema is what the tables of a database are made with.
func schema(ctx context.Context, db *sql.DB) (text string, err error) {
	err = db.QueryRowContext(ctx, "SELECT group_concat(name || char(10) || coalesce(sql, ''), char(10)) FROM (SELECT name, sql FROM sqlite_master ORDER BY name)").Scan(&text)
	return text, err
}

// readable reads a file to its end.
func readable(path string) error {
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

// check reads all of the database and holds it against itself.
func (e *engine) check(ctx context.Context) error {
	var said string
	if err := e.reads.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	_, err := loadApprovals(ctx, e.reads)
	return e.blame(ctx, err)
}

// putAside moves a damaged file out of the way, for somebody to look at.
func (db *DB) putAside(why error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.broken++; db.broken > maxBroken {
		return fmt.Errorf("the database was damaged %d times; check the disk: %w", db.broken, why)
	}
	aside, err := moveAside(db.path, "corrupt", db.clock.now())
	if err != nil {
		return fmt.Errorf("put a damaged database aside: %w", err)
	}
	db.wrong = 0
	db.logger.Error("the database is damaged; it was put aside and a new one is begun",
		"error", why, "looks", maxLooks, "aside", aside)
	db.notes = append(db.notes, fmt.Sprintf(
		"The database was damaged and is kept as %s; a new one was begun. It has the records that are still in the spool, the damaged file has the older ones.",
		filepath.Base(aside)))
	return nil
}

// keepOpen opens the database, and again whenever it has failed.
func (db *DB) keepOpen(ctx context.Context) {
	defer close(db.done)
	x := examination{wait: db.pause}
	for before := false; ; before = true {
		e := db.openSoon(ctx, &x)
		if e == nil {
			db.set(nil, errClosed)
			return
		}
		x = examination{wait: db.pause}
		db.set(e, nil)
		if before {
			select {
			case db.reopened <- struct{}{}:
			default:
			}
		}
		x.why = db.serve(ctx, e)
		if err := e.close(); err != nil {
			db.logger.Warn("the database did not close well", "error", err)
		}
		if x.why == nil {
			return
		}
	}
}
