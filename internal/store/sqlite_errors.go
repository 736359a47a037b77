package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"

	"mcpproxy/internal/store/activity"
)

// Primary result codes of SQLite after which the file is checked. codeStatementError is the code for a statement that
// does not match the tables.
const (
	codeStatementError = 1
	codeIOErr          = 10
	codeCorrupt        = 11
	codeNotADB         = 26
	primaryCodeMask    = 0xff
)

var (
	// errForeign is the error for a database that belongs to another program.
	errForeign = errors.New("the file is a database of another program")
	// errDamaged is the error for damage that SQLite does not detect, such as invalid rows.
	errDamaged = errors.New("the database is damaged")
)

// Primary result codes of SQLite for disk errors, in addition to codeIOErr.
const (
	codeReadOnly = 8
	codeFull     = 13
)

// wrapDiskError wraps a disk error in activity.ErrIO, so that the activity log recognizes it.
func wrapDiskError(err error) error {
	if err == nil || !isDiskError(err) {
		return err
	}
	return fmt.Errorf("%w: %w", activity.ErrIO, err)
}

func isDiskError(err error) bool {
	if errors.Is(err, errDeleted) {
		return true
	}
	switch sqliteErrorCode(err) {
	case codeReadOnly, codeIOErr, codeFull:
		return true
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func sqliteErrorCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & primaryCodeMask
	}
	return 0
}

// isCorruptionError reports whether err means that the file is damaged.
func isCorruptionError(err error) bool {
	c := sqliteErrorCode(err)
	return c == codeCorrupt || c == codeNotADB || errors.Is(err, errForeign) || errors.Is(err, errDamaged)
}

var errDeleted = errors.New("the file of the database was deleted or replaced")
