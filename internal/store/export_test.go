package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// OpenImpatient is Open with short pauses between the looks at a damaged file.
func OpenImpatient(path string) *DB { return open(path, nil, time.Millisecond) }

// Ready waits until the database is open, or has failed to open.
func (db *DB) Ready(ctx context.Context) error {
	_, err := db.use(ctx)
	return err
}

// Times returns the columns of durations and of own times.
func (db *DB) Times(ctx context.Context) (durations, own []uint64, err error) {
	for _, c := range []struct {
		field field
		to    *[]uint64
	}{{fieldDuration, &durations}, {fieldOwn, &own}} {
		if err := db.engine.addColumns(ctx, c.field); err != nil {
			return nil, nil, err
		}
		x := &db.engine.index
		err := eachColumn(ctx, db.engine.reads, c.field, x.firstChunk, x.firstChunk+int64(len(x.chunks)), func(_ int64, data []byte) error {
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

// Chained returns the hash that an entry has after the one with the hash prev: what is
// behind a tab is not chained.
func Chained(prev, payload []byte) []byte {
	payload, _, _ = bytes.Cut(payload, []byte{'\t'})
	h := sha256.Sum256(fmt.Appendf(nil, "%x %s", prev, payload))
	return h[:]
}

// CheckSpool checks the chain of the spool in dir.
func CheckSpool(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.spool")) // in the order of their entries
	if err != nil || len(segments) == 0 {
		t.Fatalf("%d segments, %v", len(segments), err)
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
			follows := n == 0 && last == nil || n == 0 && bytes.Equal(hash, last) || n > 0 && bytes.Equal(hash, Chained(last, payload))
			if err != nil || !follows {
				t.Fatalf("the chain breaks at line %d of %s", n+1, path)
			}
			last = hash
		}
	}
}
