package store

import (
	"context"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// Statements are written once for both databases. A statement has a ? for each value: int64, string, bool, []byte or
// nil. Text in braces is only for PostgreSQL. A | in braces separates it from the alternative text for SQLite. In
// PostgreSQL, the tables of the activity log contain the rows of several instances, and @instance is the instance of
// the connection.

// sqlReader runs queries in either database.
type sqlReader interface {
	// eachRow calls fn for each row, after it has scanned the row. A sql.RawBytes is valid until fn returns. fn must not
	// use the reader.
	eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error
	// firstRow scans the first row and reports whether there is one.
	firstRow(ctx context.Context, to scanTargets, query string, values ...any) (found bool, err error)
	// ofInstance returns a reader for statements about one instance.
	ofInstance(instance int64) sqlReader
	// keysInIDRange returns the keys of at most two records with IDs in [low, high].
	keysInIDRange(ctx context.Context, low, high string) ([]recordKey, error)
	// eachKeyOfID calls fn for each record with one of the IDs.
	eachKeyOfID(ctx context.Context, ids map[string]int64, fn func(id string, k recordKey)) error
	// eachStoredRecord reads the records with these keys, in order. It calls fn for each record that exists, with its
	// index in keys.
	eachStoredRecord(ctx context.Context, keys []recordKey, fn func(at int64, s *activity.StoredRecord) error) error
	// encodeCursor encodes the key of the last record of a page as a cursor.
	encodeCursor(ctx context.Context, k recordKey) (string, error)
	// eachColumn calls fn for the columns of the fields in ranges, range by range. n is the index of the range.
	eachColumn(ctx context.Context, ranges []chunkRange, of []columnField, fn func(n int, f columnField, id chunkID, data []byte) error) error
	// eachPage calls fn for the page of each segment in ranges that can contain a term.
	eachPage(ctx context.Context, ranges []chunkRange, t searchTerm, fn func(s segmentID, data []byte) error) error
	// eachFurtherPage calls fn for the following pages of segments that can contain more words with a prefix.
	eachFurtherPage(ctx context.Context, segments []segmentID, t searchTerm, fn func(s segmentID, data []byte) error) error
}

// sqlTx is a transaction in either database.
type sqlTx interface {
	sqlReader
	// write runs a statement, at the latest before the next query or the commit. If it fails, the transaction fails and
	// runs no further statement.
	write(query string, values ...any)
	// lockExclusive waits until no other transaction has this lock, and takes it.
	lockExclusive()
	// notify sends a notification to the other instances when the transaction commits.
	notify(payload string)
}

// transactor runs functions with a connection to either database.
type transactor interface {
	// update runs fn in a transaction.
	update(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error
	// updateDurably does the same as update, and the changes of fn survive a loss of power.
	updateDurably(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error
	// updateDecisions does the same as update, for a change of the decisions. If another instance has changed the
	// decisions since the last loadDecisions, it returns approval.ErrStale, unless always is true. It notifies the
	// other instances with payload.
	updateDecisions(ctx context.Context, always bool, payload string, fn func(ctx context.Context, t sqlTx) error) error
	// view runs fn with a connection for reading.
	view(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// snapshot does the same as view, but in one consistent snapshot.
	snapshot(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// query runs fn in one consistent snapshot, with the records that f selects. eachSelectedChunk reads the given
	// columns. incomplete reports whether an index that the query needs could not be written because the disk failed.
	query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) (incomplete bool, err error)
	// decodeCursor returns the last record of the previous page, or nil for the first page.
	decodeCursor(cursor string) (*recordKey, error)
	// load does the same as view, for data that must be readable. If rows are invalid, an SQLite file is checked.
	load(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// loadDecisions does the same as load, for the decisions, in one consistent snapshot.
	loadDecisions(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
}

// commonStore implements the methods that use the same statements in both databases.
type commonStore struct {
	db    transactor
	clock steadyClock
}

// viewed returns the result of fn, which runs with a connection for reading.
func viewed[T any](ctx context.Context, db transactor, fn func(ctx context.Context, r sqlReader) (T, error)) (result T, err error) {
	err = db.view(ctx, func(ctx context.Context, r sqlReader) error {
		result, err = fn(ctx, r)
		return err
	})
	return result, err
}

// collectRows runs a query. It returns what fn returns for each row.
func collectRows[T any](ctx context.Context, r sqlReader, to scanTargets, fn func() (T, error), query string, values ...any) (all []T, err error) {
	err = r.eachRow(ctx, to, func() error {
		one, err := fn()
		all = append(all, one)
		return err
	}, query, values...)
	return all, err
}

// expandDialect returns the text of a statement for PostgreSQL or SQLite.
func expandDialect(query string, postgres bool) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(query, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		both, after, _ := strings.Cut(rest, "}")
		text, forSQLite, _ := strings.Cut(both, "|")
		if !postgres {
			text = forSQLite
		}
		out.WriteString(text)
		query = after
	}
}

// instanceMark is a placeholder for the instance, which is passed as the first value of a statement.
const instanceMark = "@instance"

// expandForPostgres returns a statement with $1, $2, … for its values. It reports whether the first value is the
// instance.
func expandForPostgres(query string) (text string, ofInstance bool) {
	query = expandDialect(query, true)
	n := 1
	if ofInstance = strings.Contains(query, instanceMark); ofInstance {
		query, n = strings.ReplaceAll(query, instanceMark, "$1"), 2
	}
	var out strings.Builder
	for ; ; n++ {
		before, after, more := strings.Cut(query, "?")
		out.WriteString(before)
		if !more {
			return out.String(), ofInstance
		}
		out.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// expandForSQLite returns a statement for SQLite.
func expandForSQLite(query string) string {
	if strings.IndexByte(query, '{') < 0 {
		return query
	}
	return expandDialect(query, false)
}
