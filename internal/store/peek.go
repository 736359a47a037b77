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

// PeekResult is the result of Peek, which reads a database that a daemon may have open.
type PeekResult struct {
	Version int64 // version of the schema in the file
	Newest  int64 // newest version that this program supports
	// The fields below are set only if the version is the newest one.
	Waiting  map[string]WaitingDefinitionCounts // by server
	Proposed []string                           // names of servers that agents proposed
}

// WaitingDefinitionCounts contains the number of definitions of a server that wait for review.
type WaitingDefinitionCounts struct{ Tools, Primitives int }

// Peek reads the database at path. It does not create, migrate or repair anything. It returns fs.ErrNotExist if there
// is no database.
func Peek(ctx context.Context, path string) (PeekResult, error) {
	if info, err := os.Stat(path); err != nil {
		return PeekResult{}, err
	} else if !info.Mode().IsRegular() {
		return PeekResult{}, fmt.Errorf("%s is not a file", path)
	} else if info.Size() == 0 {
		return PeekResult{}, fs.ErrNotExist // another process is just creating the database
	}
	db, err := openPool(path, 1, "query_only(1)")
	if err != nil {
		return PeekResult{}, err
	}
	s, err := readPeekResult(ctx, db)
	return s, errors.Join(err, db.Close())
}

// CheckPages reads all pages of the database at path. It returns a description of the first damage, or "" if there is
// none. It changes nothing.
func CheckPages(ctx context.Context, path string) (damage string, err error) {
	db, err := openPool(path, 1, "query_only(1)")
	if err != nil {
		return "", err
	}
	var said string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case isCorruptionError(err):
		said, err = err.Error(), nil
	}
	if said == "ok" {
		said = ""
	}
	return said, errors.Join(err, db.Close())
}

// CheckActivityLog verifies the hashes of the activity log in the database at path and of the spool in a directory. No
// process may have the database open. It returns the first break, or nil if there is none, and changes nothing.
func CheckActivityLog(ctx context.Context, path, spool string) (*activity.Break, error) {
	db, err := openPool(path, 1, "query_only(1)")
	if err != nil {
		return nil, err
	}
	first, err := activity.VerifyClosedLog(spool, func(fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
		stopped := ctx.Err
		err = sqliteSnapshot(ctx, db, func(ctx context.Context, r sqlReader) error {
			records, end, err = readChain(ctx, r, stopped, fn)
			return err
		})
		return records, end, err
	})
	return first, errors.Join(err, db.Close())
}

func readPeekResult(ctx context.Context, db *sql.DB) (PeekResult, error) {
	s := PeekResult{Newest: newestSchemaVersion(), Waiting: map[string]WaitingDefinitionCounts{}}
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return s, err
	}
	if id != applicationID {
		return s, errForeign
	}
	if _, err := firstRow(ctx, db, scanTargets{&s.Version}, "SELECT max(version_id) FROM goose_db_version WHERE is_applied"); err != nil || s.Version != s.Newest {
		return s, err
	}
	var server, kind string
	if err := eachRow(ctx, db, scanTargets{&server, &kind}, func() error {
		w := s.Waiting[server]
		if kind == "" {
			w.Tools++
		} else {
			w.Primitives++
		}
		s.Waiting[server] = w
		return nil
	}, `SELECT h.server, h.kind FROM held h LEFT JOIN approval a ON a.server = h.server AND a.kind = h.kind AND a.tool = h.name
		WHERE a.approved IS NOT h.fingerprint AND (h.kind <> '' OR EXISTS (
			SELECT 1 FROM tool t WHERE t.server = h.server AND json_extract(CAST(t.definition AS TEXT), '$.name') = h.name))`); err != nil {
		return s, err
	}
	var name string
	err := eachRow(ctx, db, scanTargets{&name}, func() error {
		s.Proposed = append(s.Proposed, name)
		return nil
	}, "SELECT name FROM proposal ORDER BY id")
	return s, err
}

// newestSchemaVersion returns the version of the last migration.
func newestSchemaVersion() (newest int64) {
	steps, _ := fs.ReadDir(migrationFiles, "migrations/sqlite")
	for _, step := range steps {
		number, _, _ := strings.Cut(step.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}
