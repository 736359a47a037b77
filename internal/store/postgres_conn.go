package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgConn is one connection to PostgreSQL. It prepares each statement once. Values are int64,
// string, []byte, bool, pgArray or nil; rows are scanned into *int64, *string, *[]byte, *bool,
// *nullInt and *pgRawBytes.
type pgConn struct {
	*pgconn.PgConn
	prepared map[string]string
	values   [][]byte
	formats  []int16
}

// The formats of values in the protocol.
const (
	formatText   = int16(0)
	formatBinary = int16(1)
)

var allBinary = []int16{formatBinary}

// nullInt is an integer that may be NULL.
type nullInt struct {
	int64
	valid bool
}

// pgArray is an encoded array.
type pgArray []byte

func pgIntArray(all []int64) pgArray {
	const oid = 20 // int8
	return encodePgArray(oid, all, func(dst []byte, n int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(n)) })
}

func pgTextArray(all []string) pgArray {
	const oid = 25 // text
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

// prepare returns the name of the prepared statement for a query.
func (c *pgConn) prepare(ctx context.Context, query string) (string, error) {
	if name, ok := c.prepared[query]; ok {
		return name, nil
	}
	name := "s" + strconv.Itoa(len(c.prepared))
	if _, err := c.Prepare(ctx, name, query, nil); err != nil {
		return "", fmt.Errorf("prepare %q: %w", query, err)
	}
	c.prepared[query] = name
	return name, nil
}

// encodeArgs sets values and formats for a statement.
func (c *pgConn) encodeArgs(args []any) {
	c.values, c.formats = c.values[:0], c.formats[:0]
	for _, arg := range args {
		value, format := encodePgValue(arg)
		c.values, c.formats = append(c.values, value), append(c.formats, format)
	}
}

// encodePgValue encodes a value for a statement.
func encodePgValue(arg any) (value []byte, format int16) {
	switch v := arg.(type) {
	case nil:
		return nil, formatText
	case int64:
		return strconv.AppendInt(nil, v, 10), formatText
	case string:
		return []byte(v), formatText
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

// exec runs a statement and returns the number of affected rows.
func (c *pgConn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	name, err := c.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	c.encodeArgs(args)
	tag, err := c.ExecPrepared(ctx, name, c.values, c.formats, allBinary).Close()
	return tag.RowsAffected(), err
}

// execScript runs statements without values.
func (c *pgConn) execScript(ctx context.Context, statements string) error {
	return c.Exec(ctx, statements).Close()
}

// eachRow runs a query and calls fn after it has scanned each row. A pgRawBytes is valid until fn
// returns.
func (c *pgConn) eachRow(ctx context.Context, to scanTargets, fn func() error, query string, args ...any) error {
	name, err := c.prepare(ctx, query)
	if err != nil {
		return err
	}
	c.encodeArgs(args)
	rows := c.ExecPrepared(ctx, name, c.values, c.formats, allBinary)
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

// firstRow scans the row of a query and reports whether there is one.
func (c *pgConn) firstRow(ctx context.Context, to scanTargets, query string, args ...any) (found bool, err error) {
	err = c.eachRow(ctx, to, func() error { found = true; return nil }, query, args...)
	return found, err
}

// pgRawBytes are bytes that are valid until the next row is read.
type pgRawBytes []byte

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
		case *nullInt:
			*p = nullInt{}
			if v != nil {
				p.int64, ok = decodePgInt(v)
				p.valid = true
			}
		case *string:
			*p = string(v)
		case *[]byte:
			*p = bytes.Clone(v)
		case *pgRawBytes:
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

// pgBatch collects statements and sends them together.
type pgBatch struct {
	conn  *pgConn
	batch pgconn.Batch
	n     int
	err   error
}

// queue adds a statement.
func (b *pgBatch) queue(ctx context.Context, query string, args ...any) {
	if b.err != nil {
		return
	}
	var name string
	if name, b.err = b.conn.prepare(ctx, query); b.err != nil {
		return
	}
	values, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		values[i], formats[i] = encodePgValue(arg)
	}
	b.batch.ExecPrepared(name, values, formats, allBinary)
	b.n++
}

// send runs the queued statements.
func (b *pgBatch) send(ctx context.Context) error {
	if b.err != nil || b.n == 0 {
		return b.err
	}
	batch := b.batch
	b.batch, b.n = pgconn.Batch{}, 0
	return b.conn.ExecBatch(ctx, &batch).Close()
}

// pgCopyRows collects rows for COPY in its binary format.
type pgCopyRows struct {
	table string // the table with its columns
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

// send writes the rows.
func (c *pgCopyRows) send(ctx context.Context, conn *pgConn) error {
	if c.rows == 0 {
		return nil
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
	// beginRead begins a transaction with one consistent snapshot.
	beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// cleanPgText replaces what PostgreSQL cannot store in a text: invalid UTF-8 and NUL.
func cleanPgText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
