package store

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// chunkSize is the number of records in a chunk.
const (
	chunkSize  = 1024
	chunkWords = chunkSize / 64
)

// bitmap has one bit for each record of a chunk. It is immutable. A nil bitmap has no bits set.
type bitmap [chunkWords]uint64

func (b *bitmap) has(i int) bool { return b != nil && b[i/64]&(1<<(i%64)) != 0 }

// countFrom counts the bits that are set, starting at index i.
func (b *bitmap) countFrom(i int64) (n int64) {
	if b == nil {
		return 0
	}
	for ; i < chunkSize && i%64 != 0; i++ {
		n += int64(b[i/64] >> (i % 64) & 1)
	}
	for ; i < chunkSize; i += 64 {
		n += int64(bits.OnesCount64(b[i/64]))
	}
	return n
}

// nilIfEmpty returns b, or nil if no bit is set.
func (b *bitmap) nilIfEmpty() *bitmap {
	if *b == (bitmap{}) {
		return nil
	}
	return b
}

func (b *bitmap) encode() []byte {
	return appendUint64s(nil, b[:])
}

// appendUint64s appends words of 64 bits in little-endian order.
func appendUint64s(dst []byte, words []uint64) []byte {
	for _, w := range words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

func decodeBitmap(data []byte) (*bitmap, error) {
	if data == nil {
		return nil, nil
	}
	if len(data) != chunkSize/8 {
		return nil, fmt.Errorf("a bitmap of %d bytes: %w", len(data), errDamaged)
	}
	var b bitmap
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return b.nilIfEmpty(), nil
}
