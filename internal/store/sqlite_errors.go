package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"

	"mcpproxy/internal/store/activity"
)

// The primary result codes of SQLite after which a file is looked at. The first is
// that of a statement which does not fit the tables.
const (
	codeStatementError = 1
	codeIOErr          = 10
	codeCorrupt        = 11
	codeNotADB         = 26
	primaryCodeMask    = 0xff
)

var (
	// errForeign is a database that another program has made.
	errForeign = errors.New("the file is a database of another program")
	// errDamaged is what SQLite does not notice: the rows cannot be right.
	errDamaged = errors.New("the database is damaged")
)

// The primary result codes of SQLite that tell of the disk, beside codeIOErr.
const (
	codeReadOnly = 8
	codeFull     = 13
)

// wrapDiskError makes an error of the disk known as one to the activity log.
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
	switch sqliteCode(err) {
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

func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & primaryCodeMask
	}
	return 0
}

// isCorrupt reports whether err says that the file is damaged.
func isCorrupt(err error) bool {
	c := sqliteCode(err)
	return c == codeCorrupt || c == codeNotADB || errors.Is(err, errForeign) || errors.Is(err, errDamaged)
}

var errDeleted = errors.New("the file of the database was deleted or replaced")
