package store

import (
	"context"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// A statement that both databases run has a ? for each value: int64, string, bool, []byte or nil.
// Text in braces is for PostgreSQL only; text for SQLite can follow a | in it. The tables of the
// activity log in PostgreSQL have the rows of several instances: @instance is the instance of the
// connection.

// sqlReader runs queries on either database.
type sqlReader interface {
	// eachRow calls fn after it has scanned each row. A sql.RawBytes is valid until fn returns.
	eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error
	// firstRow scans the first row and reports whether there is one.
	firstRow(ctx context.Context, to scanTargets, query string, values ...any) (found bool, err error)
}

// sqlTx is a transaction of either database.
type sqlTx interface {
	sqlReader
	// write runs a statement, at the latest before the next query and the commit. If it fails, the
	// transaction fails and runs no further statement.
	write(query string, values ...any)
	// lockExclusive waits until no other transaction holds this lock.
	lockExclusive()
	// notify sends a notification to the other instances when the transaction commits.
	notify(payload string)
}

// transactor runs functions with a connection of either database.
type transactor interface {
	// update runs fn in a transaction.
	update(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error
	// updateDurably is update, and what fn writes survives a loss of power.
	updateDurably(ctx context.Context, fn func(ctx context.Context, t sqlTx) error) error
	// decide is update for a change of the decisions. If another instance has changed them since the
	// last loadDecisions, the error is approval.ErrStale, unless always is true. payload notifies the
	// other instances.
	decide(ctx context.Context, always bool, payload string, fn func(ctx context.Context, t sqlTx) error) error
	// view runs fn with a connection that reads.
	view(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// snapshot is view in one consistent snapshot.
	snapshot(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// query is snapshot with the records that f selects; eachSelectedChunk reads the given columns.
	// incomplete reports whether the disk did not accept an index that the query needs.
	query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) (incomplete bool, err error)
	// decodeCursor returns the last record of the page before, nil for the first page.
	decodeCursor(cursor string) (*recordKey, error)
	// load is view for data that must be readable: an error about impossible rows is a reason to
	// check an SQLite file.
	load(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
	// loadDecisions is load for the decisions, in one snapshot.
	loadDecisions(ctx context.Context, fn func(ctx context.Context, r sqlReader) error) error
}

// commonStore stores what both databases store with the same statements.
type commonStore struct {
	db    transactor
	clock steadyClock
}

// expandDialect returns the text of a statement for one of the databases.
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

// instanceMark is replaced by the first value of a statement.
const instanceMark = "@instance"

// expandForPostgres returns a statement with $1, $2, … for its values, and reports whether the first of
// them is the instance.
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
