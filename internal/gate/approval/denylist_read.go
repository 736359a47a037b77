package approval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
)

// The file is text. Its first line has the start of the chain and how far the file was synced, so that
// truncation is noticed. Every other line is the hash of the previous line and itself, and an entry as
// JSON.

// link is a position in the chain.
type link struct {
	seq  int64 // number of lines up to here
	hash digest
}

const (
	format   = "mcpproxy-restrictions 1"
	firstLen = len(format) + 1 + 2*sha256.Size + 1 + 20 + 1 + 2*sha256.Size + 1 + 16 + 1
)

// maxFile limits the file, in bytes. A million tools need less.
const maxFile = 256 << 20

func chainHash(prev digest, data []byte) (h digest) {
	s := sha256.New()
	s.Write(prev[:])
	s.Write(data)
	s.Sum(h[:0])
	return h
}

// firstLine returns the first line, which has a fixed length.
func firstLine(seed digest, head link) []byte {
	text := fmt.Appendf(nil, "%s %x %020d %x ", format, seed, head.seq, head.hash)
	sum := sha256.Sum256(text)
	return fmt.Appendf(text, "%x\n", sum[:8])
}

func parseFirst(text []byte) (seed digest, head link, ok bool) {
	parts := bytes.Fields(text)
	if len(parts) != 6 {
		return seed, head, false
	}
	var err error
	if head.seq, err = strconv.ParseInt(string(parts[3]), 10, 64); err != nil {
		return seed, head, false
	}
	ok = seed.UnmarshalText(parts[2]) == nil && head.hash.UnmarshalText(parts[4]) == nil
	return seed, head, ok && bytes.Equal(firstLine(seed, head), text)
}

// reading is the result of reading the file.
type reading struct {
	entries entries
	gaps    bool
	exists  bool   // the file exists
	damage  string // what is damaged; "" if nothing
	seed    digest
	head    link
	size    int64 // of the undamaged part
}

// intact reports whether the file is complete.
func (r reading) intact() bool { return r.exists && r.damage == "" }

func (r *reading) parse(text []byte) {
	if len(text) > maxFile {
		r.damaged("it is too large")
		text = text[:maxFile]
	}
	synced, known := link{}, false
	if first := text[:min(len(text), firstLen)]; len(first) == firstLen {
		r.seed, synced, known = parseFirst(first)
	}
	if !known {
		r.damaged("its first line cannot be read")
	}
	rest := text[min(len(text), firstLen):]
	r.size = int64(len(text) - len(rest))
	r.head = link{0, r.seed}
	for {
		whole, after, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			break // nothing, or the rest of a crash
		}
		known = r.line(whole, known)
		r.size += int64(len(rest) - len(after))
		rest = after
	}
	if r.head.seq < synced.seq {
		r.damaged(fmt.Sprintf("%d lines are missing at its end", synced.seq-r.head.seq))
	}
}

// line parses one line. prev reports whether the hash of the previous line is known; the result reports it
// for this line.
func (r *reading) line(text []byte, prev bool) (known bool) {
	r.head.seq++
	hash, data, _ := bytes.Cut(text, []byte{' '})
	var h digest
	known = h.UnmarshalText(hash) == nil
	good := known && prev && chainHash(r.head.hash, data) == h
	r.head.hash = h
	var l line
	ok := json.Unmarshal(data, &l) == nil && l.valid()
	if good && ok {
		r.gaps = r.gaps || l.Gaps
		r.entries.apply(l)
		return true
	}
	r.damaged(fmt.Sprintf("line %d cannot be read or is not in its place", r.head.seq+1))
	if ok {
		r.restrict(l)
	}
	return known
}

// restrict applies only the restrictions of a line that may be wrong.
func (r *reading) restrict(l line) {
	if l.Forget || l.Server == "" {
		return
	}
	was := r.entries.of(l.subject)
	l.Block = cmp.Or(l.Block, was.Block)
	l.Off = cmp.Or(l.Off, was.Off)
	l.Was = cmp.Or(was.Was, l.Was)
	r.entries.apply(l)
}

func (r *reading) damaged(what string) {
	if r.damage == "" {
		r.damage = what
	}
}
