package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgConn is one connection to PostgreSQL. It prepares each statement only once. Values are int64, string, []byte, bool,
// pgArray or nil. Rows are scanned into *int64, *string, *[]byte, *bool, *sql.NullInt64, *sql.NullString and
// *sql.RawBytes.
type pgConn struct {
	*pgconn.PgConn
	instance int64 // the value of @instance in statements
	prepared map[string]pgStatement
	values   [][]byte
	formats  []int16
	pending  []pgWrite // queued statements that were not sent yet
	// txErr is the first error of a sent statement of the current transaction.
	txErr error
}

// pgStatement is a prepared statement.
type pgStatement struct {
	name       string
	ofInstance bool // whether its first value is the instance
}

type pgWrite struct {
	query  string
	values []any
}

// Formats of values in the protocol.
const (
	formatText   = int16(0)
	formatBinary = int16(1)
)

var allBinary = []int16{formatBinary}

// pgArray is an encoded array.
type pgArray []byte

func pgIntArray(all []int64) pgArray {
	const oid = 20 // the type int8
	return encodePgArray(oid, all, func(dst []byte, n int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(n)) })
}

func pgTextArray(all []string) pgArray {
	const oid = 25 // the type text
	return encodePgArray(oid, all, func(dst []byte, s string) []byte { return append(dst, s...) })
}

func encodePgArray[T any](oid uint32, all []T, add func([]byte, T) []byte) pgArray {
	head := []uint32{1, 0, oid, uint32(len(all)), 1}
	if len(all) == 0 {
		head = []uint32{0, 0, oid}
	}
	var out []byte
	for _, n := range head {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	for _, v := range all {
		at := len(out)
		out = add(append(out, 0, 0, 0, 0), v)
		binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	}
	return out
}

// prepare returns the prepared statement for a query.
func (c *pgConn) prepare(ctx context.Context, query string) (pgStatement, error) {
	if s, ok := c.prepared[query]; ok {
		return s, nil
	}
	text, ofInstance := expandForPostgres(query)
	s := pgStatement{"s" + strconv.Itoa(len(c.prepared)), ofInstance}
	if _, err := c.Prepare(ctx, s.name, text, nil); err != nil {
		return pgStatement{}, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.prepared[query] = s
	return s, nil
}

// appendArgs appends the encoded values of a statement.
func (c *pgConn) appendArgs(s pgStatement, values [][]byte, formats []int16, args []any) ([][]byte, []int16) {
	if s.ofInstance {
		values, formats = append(values, strconv.AppendInt(nil, c.instance, 10)), append(formats, formatText)
	}
	for _, arg := range args {
		value, format := encodePgValue(arg)
		values, formats = append(values, value), append(formats, format)
	}
	return values, formats
}

// encodePgValue encodes a value for a statement.
func encodePgValue(arg any) (value []byte, format int16) {
	switch v := arg.(type) {
	case nil:
		return nil, formatText
	case int64:
		return strconv.AppendInt(nil, v, 10), formatText
	case string:
		return []byte(cleanPgText(v)), formatText
	case bool:
		return strconv.AppendBool(nil, v), formatText
	case pgArray:
		return v, formatBinary
	case []byte:
		if v == nil {
			return nil, formatText
		}
		return v, formatBinary
	}
	panic(fmt.Sprintf("a value of type %T", arg))
}

// start sends the queued statements and then this statement.
func (c *pgConn) start(ctx context.Context, query string, args []any) (*pgconn.ResultReader, error) {
	if err := c.flush(ctx); err != nil {
		return nil, err
	}
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	c.values, c.formats = c.appendArgs(s, c.values[:0], c.formats[:0], args)
	return c.ExecPrepared(ctx, s.name, c.values, c.formats, allBinary), nil
}

// exec runs a statement and returns the number of affected rows.
func (c *pgConn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	rows, err := c.start(ctx, query, args)
	if err != nil {
		return 0, err
	}
	tag, err := rows.Close()
	return tag.RowsAffected(), err
}

// write queues a statement of the transaction.
func (c *pgConn) write(query string, values ...any) {
	c.pending = append(c.pending, pgWrite{query, values})
}

// flush sends all queued statements together.
func (c *pgConn) flush(ctx context.Context) error {
	if len(c.pending) == 0 || c.txErr != nil {
		return c.txErr
	}
	var batch pgconn.Batch
	for _, w := range c.pending {
		s, err := c.prepare(ctx, w.query)
		if err != nil {
			c.txErr = err
			return err
		}
		values, formats := c.appendArgs(s, make([][]byte, 0, len(w.values)+1), make([]int16, 0, len(w.values)+1), w.values)
		batch.ExecPrepared(s.name, values, formats, allBinary)
	}
	c.pending = nil
	c.txErr = c.ExecBatch(ctx, &batch).Close()
	return c.txErr
}

// ofInstance returns the connection for queries about another instance.
func (c *pgConn) ofInstance(instance int64) sqlReader {
	one := *c
	one.instance, one.pending = instance, nil
	return &one
}

// pgQuestionLock is the advisory lock that lockExclusive takes.
const pgQuestionLock = pgMigrationLock + 1

func (c *pgConn) lockExclusive() { c.write("SELECT pg_advisory_xact_lock($1)", pgQuestionLock) }

func (c *pgConn) notify(payload string) { c.write("SELECT pg_notify($1, $2)", pgChannel, payload) }

// execScript runs several statements without values.
func (c *pgConn) execScript(ctx context.Context, statements string) error {
	return c.Exec(ctx, statements).Close()
}

func (c *pgConn) eachRow(ctx context.Context, to scanTargets, fn func() error, query string, args ...any) error {
	rows, err := c.start(ctx, query, args)
	if err != nil {
		return err
	}
	for err == nil && rows.NextRow() {
		if err = scanPgRow(to, rows.Values()); err == nil {
			err = fn()
		}
	}
	if _, closed := rows.Close(); err == nil {
		err = closed
	}
	return err
}

func (c *pgConn) firstRow(ctx context.Context, to scanTargets, query string, args ...any) (found bool, err error) {
	err = c.eachRow(ctx, to, func() error { found = true; return nil }, query, args...)
	return found, err
}

// scanPgRow scans a row.
func scanPgRow(to scanTargets, values [][]byte) error {
	if len(to) != len(values) {
		return fmt.Errorf("a row has %d columns, not %d", len(values), len(to))
	}
	for i, v := range values {
		ok := true
		switch p := to[i].(type) {
		case *int64:
			*p, ok = decodePgInt(v)
		case *sql.NullInt64:
			*p = sql.NullInt64{}
			if v != nil {
				p.Int64, ok = decodePgInt(v)
				p.Valid = true
			}
		case *sql.NullString:
			*p = sql.NullString{String: string(v), Valid: v != nil}
		case *string:
			*p = string(v)
		case *[]byte:
			*p = bytes.Clone(v)
		case *sql.RawBytes:
			*p = v
		case *bool:
			ok = len(v) == 1
			*p = ok && v[0] != 0
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("column %d cannot be read into a %T", i+1, to[i])
		}
	}
	return nil
}

func decodePgInt(v []byte) (int64, bool) {
	switch len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v)), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))), true
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))), true
	}
	return 0, false
}

// pgCopyRows collects rows for COPY in its binary format.
type pgCopyRows struct {
	table string // name of the table and its columns
	data  []byte
	rows  int
}

var pgCopyHeader = append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)

// addRow adds a row. Values are int64, int32, int16, string, []byte or nil.
func (c *pgCopyRows) addRow(values ...any) {
	if c.rows == 0 {
		c.data = append(c.data, pgCopyHeader...)
	}
	c.rows++
	c.data = binary.BigEndian.AppendUint16(c.data, uint16(len(values)))
	for _, value := range values {
		at := len(c.data)
		c.data = append(c.data, 0, 0, 0, 0)
		null := false
		switch v := value.(type) {
		case nil:
			null = true
		case int64:
			c.data = binary.BigEndian.AppendUint64(c.data, uint64(v))
		case int32:
			c.data = binary.BigEndian.AppendUint32(c.data, uint32(v))
		case int16:
			c.data = binary.BigEndian.AppendUint16(c.data, uint16(v))
		case string:
			c.data = append(c.data, v...)
		case []byte:
			null = v == nil
			c.data = append(c.data, v...)
		default:
			panic(fmt.Sprintf("a value of type %T", value))
		}
		size := uint32(len(c.data) - at - 4)
		if null {
			size = 1<<32 - 1
		}
		binary.BigEndian.PutUint32(c.data[at:], size)
	}
}

// send writes the collected rows.
func (c *pgCopyRows) send(ctx context.Context, conn *pgConn) error {
	if c.rows == 0 {
		return nil
	}
	if err := conn.flush(ctx); err != nil {
		return err
	}
	c.data = binary.BigEndian.AppendUint16(c.data, 1<<16-1)
	_, err := conn.CopyFrom(ctx, bytes.NewReader(c.data), "COPY "+c.table+" FROM STDIN (FORMAT binary)")
	return err
}

// runTx runs fn in a transaction.
func (c *pgConn) runTx(ctx context.Context, begin string, fn func() error) error {
	if err := c.execScript(ctx, begin); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		err = c.flush(ctx)
	}
	if c.txErr != nil {
		err = c.txErr // later errors are consequences of this one
	}
	c.pending, c.txErr = nil, nil
	if err == nil {
		if err = c.execScript(ctx, "COMMIT"); err == nil {
			return nil
		}
	}
	if !c.IsClosed() {
		if back := c.execScript(context.WithoutCancel(ctx), "ROLLBACK"); back != nil {
			err = errors.Join(err, back)
		}
	}
	return err
}

const (
	beginWrite = "BEGIN"
	// beginRead begins a transaction that reads one consistent snapshot.
	beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// cleanPgText replaces invalid UTF-8 and NUL characters, because PostgreSQL cannot store them.
func cleanPgText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
