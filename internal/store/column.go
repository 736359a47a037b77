package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"mcpproxy/internal/store/activity"
)

// A column contains one value for each record of a chunk. The value is a number, or the first 64 bits of the SHA-256 of
// a text (0 for an empty text). So no dictionary has to be stored, loaded or extended. A collision of two values is
// less likely than a disk that returns wrong data.

// columnField is a property of records that filters and summaries use.
type columnField int

const (
	fieldType columnField = iota
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
	firstNumericField // marks the first of the fields with numbers
)

const (
	fieldDuration = firstNumericField + iota // in milliseconds
	fieldOwnTime                             // in microseconds
	fieldRepeats                             // number of identical refusals; 0 means one
	fieldCount
	fieldTime = fieldCount
)

// columnRowID returns the row ID of a column of a chunk. The columns of a field are adjacent. The field numbers in the
// database are older than fieldClient, so the numbers of the fields from fieldClient on differ by one.
func columnRowID(f columnField, chunk int64) int64 {
	switch {
	case f == fieldTime:
		f = fieldClient
	case f >= fieldClient:
		f++
	}
	return int64(f)<<40 | chunk
}

// hashText returns the first 64 bits of the SHA-256 of a text, or 0 for an empty text.
func hashText(s string) uint64 {
	if s == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// hashCache caches the results of hashText for values that repeat.
type hashCache map[string]uint64

func (h hashCache) hashField(f columnField, s string) uint64 {
	if s == "" || f == fieldRequest { // request IDs never repeat
		return hashText(s)
	}
	v, ok := h[s]
	if !ok {
		const enough = 4096
		if len(h) >= enough {
			clear(h)
		}
		v = hashText(s)
		h[s] = v
	}
	return v
}

// columnValues returns the values of a record for all columns: hashes of texts, and numbers.
func (h hashCache) columnValues(f *activity.RecordFacts) *[fieldCount]uint64 {
	out := [fieldCount]uint64{fieldDuration: uint64(max(0, f.Duration)), fieldOwnTime: uint64(max(0, f.OwnTime)), fieldRepeats: uint64(max(0, f.Repeats))}
	for i, v := range textFieldValues(f) {
		out[i] = h.hashField(columnField(i), v)
	}
	return &out
}

// textFieldValues returns the text values of a record by field.
func textFieldValues(f *activity.RecordFacts) [firstNumericField]string {
	return [firstNumericField]string{
		fieldType: string(f.Type), fieldStatus: string(f.Status), fieldServer: f.Server,
		fieldTool: f.Tool, fieldSession: f.Session, fieldRequest: f.Request,
		fieldIntent: f.Intent, fieldSensitivity: f.Sensitivity, fieldActor: f.Actor, fieldClient: f.Client,
		fieldError: f.ErrorCode,
	}
}

// An encoded column begins with one byte for the width: 0 if all values are equal, 1 or 2 for the size of an index into
// a list of the distinct values, or 8 for the values themselves. The number of distinct values, these values, and the
// indexes follow.
const (
	columnHead = 3
	widthRaw   = 8
	maxByte    = 1 << 8
	// maxListed is the number of distinct values above which a list is no longer smaller.
	maxListed = chunkSize * 3 / 4
)

func encodeColumn(values []uint64) []byte {
	index := map[uint64]uint16{}
	var list []uint64
	for _, v := range values {
		if _, ok := index[v]; !ok {
			if len(list) == maxListed {
				return encodeRawColumn(values)
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
	out = appendUint64s(out, list)
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

func encodeRawColumn(values []uint64) []byte {
	out := make([]byte, columnHead, columnHead+8*len(values))
	out[0] = widthRaw
	return appendUint64s(out, values)
}

// encodedColumn is an encoded column whose sizes were checked.
type encodedColumn struct {
	width int
	list  []byte // the distinct values
	body  []byte // the indexes or the values
}

func parseColumn(data []byte) (encodedColumn, error) {
	if len(data) < columnHead {
		return encodedColumn{}, fmt.Errorf("a column of %d bytes: %w", len(data), errDamaged)
	}
	c := encodedColumn{width: int(data[0])}
	n := 8 * int(binary.LittleEndian.Uint16(data[1:]))
	rest := data[columnHead:]
	if n > len(rest) || len(rest)-n != c.width*chunkSize || c.width > 2 && c.width != widthRaw || c.width == 0 && n == 0 {
		return encodedColumn{}, fmt.Errorf("a column of %d bytes, width %d: %w", len(data), c.width, errDamaged)
	}
	c.list, c.body = rest[:n], rest[n:]
	return c, nil
}

// decodedColumn is a decoded column: the distinct values, and the index of the value of each record. With it, a result
// that depends on a value is computed only once for all records with that value.
type decodedColumn struct {
	distinct []uint64
	indexes  []uint16
	buffers  struct { // memory that decodeFrom reuses
		list []uint64
		at   [chunkSize]uint16
	}
}

func (c *decodedColumn) value(i int) uint64 { return c.distinct[c.indexes[i]] }

// Indexes of a column with equal values, and of a column without a list of values.
var (
	allFirstIndex [chunkSize]uint16
	ownIndexes    = func() (all [chunkSize]uint16) {
		for i := range all {
			all[i] = uint16(i)
		}
		return all
	}()
)

// fillZero sets the value of all records to 0, which means that it is unknown.
func (c *decodedColumn) fillZero() { c.distinct, c.indexes = []uint64{0}, allFirstIndex[:] }

// setValues sets a separate value for each record, without a list of distinct values.
func (c *decodedColumn) setValues(values []uint64) {
	c.distinct, c.indexes = values, ownIndexes[:len(values)]
}

// decodeFrom decodes a column.
func (c *decodedColumn) decodeFrom(from encodedColumn) error {
	values := from.list
	if from.width == widthRaw {
		values = from.body
	}
	c.buffers.list = slices.Grow(c.buffers.list[:0], len(values)/8)[:len(values)/8]
	for i := range c.buffers.list {
		c.buffers.list[i] = binary.LittleEndian.Uint64(values[8*i:])
	}
	c.distinct = c.buffers.list
	most := 0
	switch from.width {
	case 0:
		c.indexes = allFirstIndex[:]
	case 1:
		for i, at := range from.body {
			c.buffers.at[i] = uint16(at)
			most = max(most, int(at))
		}
		c.indexes = c.buffers.at[:]
	case 2:
		for i := range c.buffers.at {
			at := binary.LittleEndian.Uint16(from.body[2*i:])
			c.buffers.at[i] = at
			most = max(most, int(at))
		}
		c.indexes = c.buffers.at[:]
	default:
		c.indexes = ownIndexes[:]
	}
	if most >= len(c.distinct) {
		return fmt.Errorf("a column with index %d: %w", most, errDamaged)
	}
	return nil
}

// decodeValues returns the value of each record.
func (c encodedColumn) decodeValues() ([]uint64, error) {
	var all decodedColumn
	if err := all.decodeFrom(c); err != nil {
		return nil, err
	}
	values := make([]uint64, chunkSize)
	for i := range values {
		values[i] = all.value(i)
	}
	return values, nil
}

// decodeColumn returns the value of each record from an encoded column.
func decodeColumn(data []byte) ([]uint64, error) {
	c, err := parseColumn(data)
	if err != nil {
		return nil, err
	}
	return c.decodeValues()
}

// readColumn reads a column from the database, and returns the value of each record.
func readColumn(ctx context.Context, db querier, id int64) ([]uint64, error) {
	var data []byte
	if err := db.QueryRowContext(ctx, "SELECT data FROM activity_column WHERE id = ?", id).Scan(&data); err != nil {
		return nil, err
	}
	return decodeColumn(data)
}

// deselectUnwantedRecords clears the bits in sel of all records that have none of the wanted values.
func (c encodedColumn) deselectUnwantedRecords(wanted []uint64, sel []uint64) {
	if c.width == widthRaw {
		retainBits(sel, func(i int) bool { return slices.Contains(wanted, binary.LittleEndian.Uint64(c.body[8*i:])) })
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
	retainBits(sel, func(i int) bool { return c.hasWantedValue(match, i) })
}

func (c encodedColumn) hasWantedValue(match []bool, i int) bool {
	if c.width == 1 {
		return match[c.body[i]]
	}
	at := int(binary.LittleEndian.Uint16(c.body[2*i:]))
	return at < len(match) && match[at]
}
