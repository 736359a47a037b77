package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Patience limits every wait in the tests. If it is exceeded, there is a bug.
const Patience = 2 * time.Minute

// OpenPatient opens a PostgreSQL database with a wait for connections that is long enough for a busy machine.
func OpenPatient(address, dir string) (*Postgres, error) {
	return openPostgres(address, dir, nil, Patience)
}

// OpenWithShortPauses opens an SQLite database with short pauses between the checks of a damaged file.
func OpenWithShortPauses(path string) *SQLite { return openSQLite(path, nil, time.Millisecond) }

// Ready waits until the database is open or has failed to open.
func (db *SQLite) Ready(ctx context.Context) error {
	_, err := db.waitOpen(ctx)
	return err
}

// DurationColumns returns the columns of durations and of MCPProxy's own times.
func (db *SQLite) DurationColumns(ctx context.Context) (durations, own []uint64, err error) {
	for _, c := range []struct {
		field columnField
		to    *[]uint64
	}{{fieldDuration, &durations}, {fieldOwnTime, &own}} {
		x := &db.engine.index
		err := sqliteReader{db.engine.reads}.eachColumn(ctx, x.storedChunks(), []columnField{c.field}, func(_ int, _ columnField, _ chunkID, data []byte) error {
			values, err := decodeColumn(data)
			*c.to = append(*c.to, values...)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		*c.to = append(*c.to, x.tail.columns[c.field]...)
	}
	return durations, own, nil
}

// NextChainHash returns the hash of an entry with this payload that follows the entry with the hash prev. It is an
// independent implementation of the format.
func NextChainHash(prev, payload []byte) []byte {
	sealed, open, found := bytes.Cut(payload, []byte{'\t'})
	if found {
		sealed = slices.Concat(sealed[:len(sealed)-1], []byte(`,"commit":{`))
		for rest := open[1:]; ; {
			name, after, _ := bytes.Cut(rest, []byte(`:[`))
			length, after, _ := bytes.Cut(after, []byte{','})
			n, err := strconv.Atoi(string(length))
			if err != nil || n >= len(after) {
				return nil
			}
			commit := sha256.Sum256(after[:n])
			if after[21] == ' ' { // a time means that the field was erased
				if _, err := base64.RawURLEncoding.Decode(commit[:], after[22:22+43]); err != nil {
					return nil
				}
			}
			sealed = fmt.Appendf(sealed, `%s:"%x"`, name, commit)
			if rest = after[n+1:]; rest[0] == '}' {
				break
			}
			sealed, rest = append(sealed, ','), rest[1:]
		}
		sealed = append(sealed, "}}"...)
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%x %s", prev, sealed))
	return h[:]
}

// MigrateTo creates a database with a certain version of the schema.
func MigrateTo(ctx context.Context, path string, version int64) error {
	if err := createPrivateFile(path); err != nil {
		return err
	}
	db, err := openPool(path, 1)
	if err != nil {
		return err
	}
	p, err := newMigrationProvider(db)
	if err == nil {
		err = claimApplicationID(ctx, db)
	}
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return errors.Join(err, db.Close())
}

// NewestSchema returns the newest version of the schema.
func NewestSchema(t *testing.T) int64 {
	t.Helper()
	steps, err := migrationFiles.ReadDir("migrations/sqlite")
	if err != nil {
		t.Fatal(err)
	}
	newest, err := strconv.ParseInt(steps[len(steps)-1].Name()[:5], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return newest
}

// CheckSpool checks the chain of the spool in dir.
func CheckSpool(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.spool")) // in the order of their entries
	if err != nil || len(segments) == 0 {
		t.Fatalf("got %d segments, %v", len(segments), err)
	}
	var last []byte
	for _, path := range segments {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range bytes.Split(bytes.Trim(data, "\x00\n"), []byte{'\n'}) {
			sum, payload, _ := bytes.Cut(line, []byte{' '})
			hash, err := hex.DecodeString(string(sum))
			follows := n == 0 && last == nil || n == 0 && bytes.Equal(hash, last) || n > 0 && bytes.Equal(hash, NextChainHash(last, payload))
			if err != nil || !follows {
				t.Fatalf("the chain breaks at line %d of %s", n+1, path)
			}
			last = hash
		}
	}
}
