package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// If the file of an open database is deleted or replaced, the process can still read and write the database, but loses
// everything when it ends. So it copies the open database to a new file: first to path.copy, which is renamed to
// path.again when it is complete. After the connections are closed, path.again replaces the database.

// RewriteFilesIfDeleted checks that the names of the database files still refer to the open files. If they do not, it
// starts to write the database again. Call it regularly.
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
		e.suspected <- errDeleted // sent at most once for each engine
	}
}

// filesDeletedOrReplaced reports whether a database file was deleted or replaced.
func (e *sqliteEngine) filesDeletedOrReplaced() bool {
	now, err := statDatabaseFiles(e.path)
	if err != nil {
		return false // other functions report errors of the disk
	}
	for i, was := range e.openedFiles {
		if was != nil && (now[i] == nil || !os.SameFile(was, now[i])) {
			return true
		}
	}
	return false
}

// writeReplacementFile writes a copy of the open database next to its lost file.
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
