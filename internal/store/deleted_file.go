package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A process can still read and write a database whose file was deleted or replaced, and loses all of it when it ends. So the
// database is written again from the open file: first as path.copy and, when it is complete, as path.again. That file replaces
// the database after the connections are closed.

// RewriteFilesIfDeleted checks that the database files still have their names. If they do not, it makes the
// database write them again. Call it from time to time.
func (db *SQLite) RewriteFilesIfDeleted() {
	db.mu.Lock()
	e := db.engine
	db.mu.Unlock()
	if e == nil || !e.filesDeletedOrReplaced() {
		return
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.engine == e && db.writeErr == nil {
		db.logger.Error("the database was deleted; it is written again", "path", db.path)
		db.writeErr = wrapDiskError(errDeleted)
		db.engine, db.err = nil, db.writeErr
		e.suspected <- errDeleted // sent once for each engine
	}
}

// filesDeletedOrReplaced reports whether a database file was deleted or replaced.
func (e *sqliteEngine) filesDeletedOrReplaced() bool {
	now, err := statDatabaseFiles(e.path)
	if err != nil {
		return false // other calls report errors of the disk
	}
	for i, was := range e.openedFiles {
		if was != nil && (now[i] == nil || !os.SameFile(was, now[i])) {
			return true
		}
	}
	return false
}

// writeReplacementFile writes the open database next to its lost file.
func (e *sqliteEngine) writeReplacementFile() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	part := e.path + ".copy"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := createPrivateFile(part); err != nil {
		return err
	}
	if err := e.writeConn.exec("VACUUM INTO ?", part); err != nil {
		return fmt.Errorf("write the database again: %w", err)
	}
	if err := checkWritable(part); err != nil {
		return err
	}
	return os.Rename(part, e.path+".again")
}
