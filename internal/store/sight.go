package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// Peeked is what a database says to somebody who only looks, perhaps while no daemon
// has it open.
type Peeked struct {
	Version int64 // of its schema
	Newest  int64 // that this program knows
	// The following is known of a database whose version is the newest.
	Waiting  map[string]Waiting // by server
	Proposed []string           // servers that agents propose
}

// Waiting counts what of a server waits for a person.
type Waiting struct{ Tools, Offers int }

// Peek looks into the database at path. It makes, migrates and mends nothing. The error
// is fs.ErrNotExist when there is none.
func Peek(ctx context.Context, path string) (Peeked, error) {
	if info, err := os.Stat(path); err != nil {
		return Peeked{}, err
	} else if !info.Mode().IsRegular() {
		return Peeked{}, fmt.Errorf("%s is not a file", path)
	} else if info.Size() == 0 {
		return Peeked{}, fs.ErrNotExist // it is about to be made
	}
	db, err := connect(path, 1, "query_only(1)")
	if err != nil {
		return Peeked{}, err
	}
	s, err := see(ctx, db)
	return s, errors.Join(err, db.Close())
}

// CheckPages reads all of the database at path, and returns what is damaged in it; "" for
// nothing. It changes nothing.
func CheckPages(ctx context.Context, path string) (damage string, err error) {
	db, err := connect(path, 1, "query_only(1)")
	if err != nil {
		return "", err
	}
	var said string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case isCorrupt(err):
		said, err = err.Error(), nil
	}
	if said == "ok" {
		said = ""
	}
	return said, errors.Join(err, db.Close())
}

// CheckLog holds the activity log in the database at path, which no process has open, and
// the spool in a directory against their hashes. It returns the first break, nil for none,
// and changes nothing.
func CheckLog(ctx context.Context, path, spool string) (*activity.Break, error) {
	db, err := connect(path, 1, "query_only(1)")
	if err != nil {
		return nil, err
	}
	first, err := activity.VerifyClosedLog(spool, func(fn func(activity.ChainPart) error) (int64, activity.SpoolPosition, error) {
		return chainIn(ctx, db, fn)
	})
	return first, errors.Join(err, db.Close())
}

func see(ctx context.Context, db *sql.DB) (Peeked, error) {
	s := Peeked{Newest: newestVersion(), Waiting: map[string]Waiting{}}
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return s, err
	}
	if id != applicationID {
		return s, errForeign
	}
	if _, err := first(ctx, db, into{&s.Version}, "SELECT max(version_id) FROM goose_db_version WHERE is_applied"); err != nil || s.Version != s.Newest {
		return s, err
	}
	var server, kind string
	if err := each(ctx, db, into{&server, &kind}, func() error {
		w := s.Waiting[server]
		if kind == "" {
			w.Tools++
		} else {
			w.Offers++
		}
		s.Waiting[server] = w
		return nil
	}, `SELECT h.server, h.kind FROM held h LEFT JOIN approval a ON a.server = h.server AND a.kind = h.kind AND a.tool = h.name
		WHERE a.approved IS NOT h.fingerprint AND (h.kind <> '' OR EXISTS (
			SELECT 1 FROM tool t WHERE t.server = h.server AND json_extract(CAST(t.definition AS TEXT), '$.name') = h.name))`); err != nil {
		return s, err
	}
	var name string
	err := each(ctx, db, into{&name}, func() error {
		s.Proposed = append(s.Proposed, name)
		return nil
	}, "SELECT name FROM proposal ORDER BY id")
	return s, err
}

// newestVersion is the version of the last migration.
func newestVersion() (newest int64) {
	steps, _ := fs.ReadDir(migrations, "migrations/sqlite")
	for _, step := range steps {
		number, _, _ := strings.Cut(step.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}
