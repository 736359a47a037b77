package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A database whose file is deleted or replaced while it is open can be read and
// written as before, and all of it is gone when the process ends. So it is
// written again from what is still open: first as path.copy, which is path.again
// once it is whole, which takes the place of the file when that is not used any
// more.

// CheckFiles looks whether the files of the database still have their names, and has
// them written again when they have not. It is meant to be called now and then.
func (db *SQLite) CheckFiles() {
	db.mu.Lock()
	e := db.engine
	db.mu.Unlock()
	if e == nil || !e.filesReplaced() {
		return
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.engine == e && db.writeErr == nil {
		db.logger.Error("the database was deleted; it is written again", "path", db.path)
		db.writeErr = wrapDiskError(errDeleted)
		db.engine, db.err = nil, db.writeErr
		e.suspected <- errDeleted // the only one for this engine
	}
}

// deleted reports whether a file that was there is not any more, or is another one.
func (e *sqliteEngine) filesReplaced() bool {
	now, err := statDatabaseFiles(e.path)
	if err != nil {
		return false // what the disk says is heard elsewhere
	}
	for i, was := range e.openedFiles {
		if was != nil && (now[i] == nil || !os.SameFile(was, now[i])) {
			return true
		}
	}
	return false
}

// rewriteFile writes the database beside its lost file.
func (e *sqliteEngine) rewriteFile() error {
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
