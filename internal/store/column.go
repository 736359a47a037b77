package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"

	"mcpproxy/internal/store/activity"
)

// A column holds one value of each record of a chunk: a number, or the first 64
// bits of the SHA-256 of a text (0 for the empty one): no dictionary to keep, to load or to let
// grow. Two values of a database that fall together are less likely than a disk
// that lies.

// field is what a record can be found by.
type field int

const (
	fieldType field = iota
	fieldStatus
	fieldServer
	fieldTool
	fieldSession
	fieldRequest
	fieldIntent
	fieldSensitivity
	fieldActor
	fieldClient
	fieldError
	hashed // what follows are numbers
)

const (
	fieldDuration = hashed + iota // milliseconds
	fieldOwn                      // microseconds
	fieldTimes                    // how often a refusal has happened; 0 = once
	fields
	fieldTime = fields
)

// columnID is the key of a column of a chunk: those of one field lie together.
// The number of times in the database is from before there were clients, and what
// came with them and after.
func columnID(f field, chunk int64) int64 {
	switch {
	case f == fieldTime:
		f = fieldClient
	case f >= fieldClient:
		f++
	}
	return int64(f)<<40 | chunk
}

func hashValue(s string) uint64 {
	if s == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// hashes remembers what hashValue returned, for values that come again.
type hashes map[string]uint64

func (h hashes) of(f field, s string) uint64 {
	if s == "" || f == fieldRequest { // requests never come again
		return hashValue(s)
	}
	v, ok := h[s]
	if !ok {
		const enough = 4096
		if len(h) >= enough {
			clear(h)
		}
		v = hashValue(s)
		h[s] = v
	}
	return v
}

func (h hashes) all(f *activity.RecordFacts) *[fields]uint64 {
	out := [fields]uint64{fieldDuration: uint64(max(0, f.Duration)), fieldOwn: uint64(max(0, f.OwnTime)), fieldTimes: uint64(max(0, f.Repeats))}
	for i, v := range valuesOf(f) {
		out[i] = h.of(field(i), v)
	}
	return &out
}

// valuesOf returns the values of a record that are hashed, by field.
func valuesOf(f *activity.RecordFacts) [hashed]string {
	return [hashed]string{
		fieldType: string(f.Type), fieldStatus: string(f.Status), fieldServer: f.Server,
		fieldTool: f.Tool, fieldSession: f.Session, fieldRequest: f.Request,
		fieldIntent: f.Intent, fieldSensitivity: f.Sensitivity, fieldActor: f.Actor, fieldClient: f.Client,
		fieldError: f.ErrorCode,
	}
}

// The encoding of a column begins with the width of an index: 0 (all values are
// the same), 1 or 2 bytes into a list of the distinct values, or 8 for the values
// themselves. Then the number of distinct values, these, and the indexes.
const (
	columnHead = 3
	widthRaw   = 8
	maxByte    = 1 << 8
	// maxListed is where listing the values stops being smaller.
	maxListed = chunkSize * 3 / 4
)

func encodeColumn(values []uint64) []byte {
	index := map[uint64]uint16{}
	var list []uint64
	for _, v := range values {
		if _, ok := index[v]; !ok {
			if len(list) == maxListed {
				return encodeRaw(values)
			}
			index[v] = uint16(len(list))
			list = append(list, v)
		}
	}
	width := 2
	switch {
	case len(list) == 1:
		width = 0
	case len(list) <= maxByte:
		width = 1
	}
	out := make([]byte, columnHead, columnHead+8*len(list)+width*len(values))
	out[0] = byte(width)
	binary.LittleEndian.PutUint16(out[1:], uint16(len(list)))
	out = appendWords(out, list)
	for _, v := range values {
		switch width {
		case 1:
			out = append(out, byte(index[v]))
		case 2:
			out = binary.LittleEndian.AppendUint16(out, index[v])
		}
	}
	return out
}

func encodeRaw(values []uint64) []byte {
	out := make([]byte, columnHead, columnHead+8*len(values))
	out[0] = widthRaw
	return appendWords(out, values)
}

// column is an encoded column, checked.
type column struct {
	width int
	list  []byte // the distinct values
	body  []byte // the indexes, or the values
}

func parseColumn(data []byte) (column, error) {
	if len(data) < columnHead {
		return column{}, fmt.Errorf("a column of %d bytes: %w", len(data), errDamaged)
	}
	c := column{width: int(data[0])}
	n := 8 * int(binary.LittleEndian.Uint16(data[1:]))
	rest := data[columnHead:]
	if n > len(rest) || len(rest)-n != c.width*chunkSize || c.width > 2 && c.width != widthRaw || c.width == 0 && n == 0 {
		return column{}, fmt.Errorf("a column of %d bytes, width %d: %w", len(data), c.width, errDamaged)
	}
	c.list, c.body = rest[:n], rest[n:]
	return c, nil
}

// codes is a column as it is counted: the values that there are, and of each record
// which it has. What follows from a value is found out once for all records that have it.
type codes struct {
	list []uint64
	at   []uint16
	room struct { // of read
		list []uint64
		at   [chunkSize]uint16
	}
}

func (c *codes) of(i int) uint64 { return c.list[c.at[i]] }

// What the records of a column have of which all are the same, and of one whose values
// are not listed.
var (
	same [chunkSize]uint16
	own  = func() (all [chunkSize]uint16) {
		for i := range all {
			all[i] = uint16(i)
		}
		return all
	}()
)

// alike has all records the same, of which nothing is known.
func (c *codes) alike() { c.list, c.at = []uint64{0}, same[:] }

// plain takes the values as they are.
func (c *codes) plain(values []uint64) { c.list, c.at = values, own[:len(values)] }

// read reads a column.
func (c *codes) read(from column) error {
	values := from.list
	if from.width == widthRaw {
		values = from.body
	}
	c.room.list = slices.Grow(c.room.list[:0], len(values)/8)[:len(values)/8]
	for i := range c.room.list {
		c.room.list[i] = binary.LittleEndian.Uint64(values[8*i:])
	}
	c.list = c.room.list
	most := 0
	switch from.width {
	case 0:
		c.at = same[:]
	case 1:
		for i, at := range from.body {
			c.room.at[i] = uint16(at)
			most = max(most, int(at))
		}
		c.at = c.room.at[:]
	case 2:
		for i := range c.room.at {
			at := binary.LittleEndian.Uint16(from.body[2*i:])
			c.room.at[i] = at
			most = max(most, int(at))
		}
		c.at = c.room.at[:]
	default:
		c.at = own[:]
	}
	if most >= len(c.list) {
		return fmt.Errorf("a column with index %d: %w", most, errDamaged)
	}
	return nil
}

// decode returns the values.
func (c column) decode() ([]uint64, error) {
	var all codes
	if err := all.read(c); err != nil {
		return nil, err
	}
	values := make([]uint64, chunkSize)
	for i := range values {
		values[i] = all.of(i)
	}
	return values, nil
}

// decodeColumn returns the values of an encoded column.
func decodeColumn(data []byte) ([]uint64, error) {
	c, err := parseColumn(data)
	if err != nil {
		return nil, err
	}
	return c.decode()
}

// readColumn returns the values of a column.
func readColumn(ctx context.Context, db querier, id int64) ([]uint64, error) {
	var data []byte
	if err := db.QueryRowContext(ctx, "SELECT data FROM activity_column WHERE id = ?", id).Scan(&data); err != nil {
		return nil, err
	}
	return decodeColumn(data)
}

// eachColumn calls fn for the columns of a field in the chunks from from to
// before past, in their order. data is valid during the call.
func eachColumn(ctx context.Context, db querier, f field, from, past int64, fn func(chunk int64, data []byte) error) error {
	var id int64
	var data sql.RawBytes
	return each(ctx, db, into{&id, &data}, func() error { return fn(id-columnID(f, 0), data) },
		"SELECT id, data FROM activity_column WHERE id >= ? AND id < ?", columnID(f, from), columnID(f, past))
}

// filter clears the bits of the records that have none of the wanted values.
func (c column) filter(wanted []uint64, sel []uint64) {
	if c.width == widthRaw {
		keep(sel, func(i int) bool { return slices.Contains(wanted, binary.LittleEndian.Uint64(c.body[8*i:])) })
		return
	}
	match, found := make([]bool, max(len(c.list)/8, maxByte)), 0
	for i := 0; i < len(c.list); i += 8 {
		if slices.Contains(wanted, binary.LittleEndian.Uint64(c.list[i:])) {
			match[i/8] = true
			found++
		}
	}
	if found == 0 {
		clear(sel)
	}
	if found == 0 || found == len(c.list)/8 {
		return
	}
	keep(sel, func(i int) bool { return c.matches(match, i) })
}

func (c column) matches(match []bool, i int) bool {
	if c.width == 1 {
		return match[c.body[i]]
	}
	at := int(binary.LittleEndian.Uint16(c.body[2*i:]))
	return at < len(match) && match[at]
}
