package activity

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

const (
	segmentSuffix = ".spool"
	segmentDigits = 20
)

// segment is one file of the spool.
type segment struct {
	first int64 // sequence number of the first entry, which is also the file name
	size  int64
	path  string
}

// segmentHeader is the first line of a segment. It states where the segment continues the chain. The line begins with
// the hash of the last entry before the segment, so that the segment can be read and checked without other segments.
// Sum is a checksum of the line.
type segmentHeader struct {
	Chain string `json:"chain"` // name of the chain; a new name if the spool was lost
	First int64  `json:"first"`
	At    int64  `json:"at"` // the latest time of an ID, in milliseconds
	Sum   string `json:"sum"`
}

func appendSegmentHeader(dst []byte, prev Hash, h segmentHeader) []byte {
	start := len(dst)
	dst = hex.AppendEncode(dst, prev[:])
	dst = append(dst, ` {"chain":`...)
	dst = wirejson.AppendString(dst, h.Chain)
	dst = append(dst, `,"first":`...)
	dst = strconv.AppendInt(dst, h.First, 10)
	dst = append(dst, `,"at":`...)
	dst = strconv.AppendInt(dst, h.At, 10)
	sum := sha256.Sum256(dst[start:])
	dst = append(dst, `,"sum":"`...)
	dst = hex.AppendEncode(dst, sum[:8])
	return append(dst, "\"}\n"...)
}

func parseSegmentHeader(line []byte) (segmentHeader, Hash, bool) {
	var h segmentHeader
	prev, data, ok := splitSpoolLine(line)
	if !ok || json.Unmarshal(data, &h) != nil || h.Chain == "" || h.First < 1 {
		return segmentHeader{}, prev, false
	}
	again := appendSegmentHeader(nil, prev, h)
	return h, prev, bytes.Equal(again[:len(again)-1], line)
}

func segmentPath(dir string, first int64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d%s", segmentDigits, first, segmentSuffix))
}

// listSegments returns the segments of dir, oldest first.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*segment
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		first, err := strconv.ParseInt(name, 10, 64)
		if !ok || err != nil || len(name) != segmentDigits || first < 1 {
			continue
		}
		path := filepath.Join(dir, e.Name())
		size, err := sizeWithoutZeros(path)
		if err != nil {
			return nil, err
		}
		out = append(out, &segment{first: first, size: size, path: path})
	}
	slices.SortFunc(out, func(a, b *segment) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// sizeWithoutZeros returns the size of a segment without the zeros at its end. They are the reserved bytes that a
// killed process leaves behind.
func sizeWithoutZeros(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 16<<10)
	for size := info.Size(); size > 0; {
		from := max(0, size-int64(len(buf)))
		part := buf[:size-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, fmt.Errorf("read the end of the spool: %w", err)
		}
		if used := len(bytes.TrimRight(part, "\x00")); used > 0 {
			return from + int64(used), nil
		}
		size = from
	}
	return 0, nil
}

// chainTail is the last valid entry of the chain, and where it ends.
type chainTail struct {
	chain           string
	seq             int64
	hash            Hash
	at              int64 // the latest time of an ID, in milliseconds
	size            int64 // of the segment, up to this entry
	needsNewSegment bool  // whether nothing more may be written to this segment
}

// findChainTail searches a segment backward for the last valid entry, so that the time does not depend on the size of
// the spool. ok is false if there is none. If the header is unreadable, the chain in the result is empty.
func findChainTail(f io.ReaderAt, size int64) (t chainTail, ok bool, err error) {
	for window := int64(64 << 10); ; window *= 4 {
		from := max(0, size-window)
		buf, err := readRange(f, from, size)
		if err != nil {
			return t, false, err
		}
		if t, ok = findLastLink(buf, from); ok {
			break
		}
		if from == 0 {
			return chainTail{}, false, nil
		}
	}
	if h, ok := readSegmentHeader(f); ok {
		t.chain, t.at = h.Chain, max(t.at, h.At)
	}
	return t, true, nil
}

func readRange(f io.ReaderAt, from, past int64) ([]byte, error) {
	b := make([]byte, past-from)
	if n, err := f.ReadAt(b, from); n < len(b) {
		return nil, fmt.Errorf("read the end of the spool: %w", err)
	}
	return b, nil
}

// findLastLink finds the last line in buf whose hash follows from the line before. buf begins at the offset from of the
// segment. Its first line may be incomplete, unless buf begins at the start of the file.
func findLastLink(buf []byte, from int64) (chainTail, bool) {
	end := bytes.LastIndexByte(buf, '\n')
	for end >= 0 {
		start := bytes.LastIndexByte(buf[:end], '\n') + 1
		if start == 0 {
			h, prev, ok := parseSegmentHeader(buf[:end])
			return chainTail{seq: h.First - 1, hash: prev, at: h.At, size: int64(end) + 1}, ok && from == 0
		}
		before := bytes.LastIndexByte(buf[:start-1], '\n') + 1
		if before == 0 && from > 0 {
			return chainTail{}, false // the line before it may begin before buf
		}
		prev, _, ok := splitSpoolLine(buf[before : start-1])
		h, data, ok2 := splitSpoolLine(buf[start:end])
		if ok && ok2 && isNextInChain(prev, data, h) {
			if seq, at, ok := parseSeqAndTime(data); ok {
				return chainTail{seq: seq, hash: h, at: at, size: from + int64(end) + 1}, true
			}
		}
		end = start - 1
	}
	return chainTail{}, false
}

// parseSeqAndTime parses the sequence number of an entry and the time of its ID.
func parseSeqAndTime(data []byte) (seq, at int64, ok bool) {
	var p struct {
		ID  string `json:"id"`
		Seq int64  `json:"seq"`
		At  int64  `json:"at"`
	}
	head, _, found := bytes.Cut(data, []byte(`,"kind":`))
	if !found || json.Unmarshal(append(bytes.Clone(head), '}'), &p) != nil {
		return 0, 0, false
	}
	ms, ok := parseULIDMillis(p.ID)
	return p.Seq, max(p.At, ms), ok && p.Seq > 0
}

func readSegmentHeader(f io.ReaderAt) (segmentHeader, bool) {
	buf := make([]byte, 512)
	n, _ := f.ReadAt(buf, 0) // if the file is short, the header is missing or incomplete
	line, _, found := bytes.Cut(buf[:n], []byte{'\n'})
	if !found {
		return segmentHeader{}, false
	}
	h, _, ok := parseSegmentHeader(line)
	return h, ok
}

const tornInfix = ".torn-"

func tornFilePath(path string, now time.Time) string {
	return fmt.Sprintf("%s%s%d", path, tornInfix, now.UnixMilli())
}

func readSegmentTail(seg *segment) (t chainTail, ok bool, err error) {
	f, err := os.Open(seg.path)
	if err != nil {
		return t, false, err
	}
	defer f.Close()
	return findChainTail(f, seg.size)
}

func newChainName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
