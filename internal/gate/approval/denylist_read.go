package approval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
)

// The file is text. Its first line contains the start of the chain and the number of synced lines, so that truncation
// is detected. Every other line contains an entry as JSON, and the hash of the previous line's hash and this entry.

// chainLink is a position in the chain.
type chainLink struct {
	seq  int64 // number of lines up to this position
	hash sha256Digest
}

const (
	format   = "mcpproxy-restrictions 1"
	firstLen = len(format) + 1 + 2*sha256.Size + 1 + 20 + 1 + 2*sha256.Size + 1 + 16 + 1
)

// maxFile limits the file, in bytes. A million tools need less.
const maxFile = 256 << 20

func chainHash(prev sha256Digest, data []byte) (h sha256Digest) {
	s := sha256.New()
	s.Write(prev[:])
	s.Write(data)
	s.Sum(h[:0])
	return h
}

// formatFirstLine returns the first line, which has a fixed length.
func formatFirstLine(seed sha256Digest, head chainLink) []byte {
	text := fmt.Appendf(nil, "%s %x %020d %x ", format, seed, head.seq, head.hash)
	sum := sha256.Sum256(text)
	return fmt.Appendf(text, "%x\n", sum[:8])
}

func parseFirstLine(text []byte) (seed sha256Digest, head chainLink, ok bool) {
	parts := bytes.Fields(text)
	if len(parts) != 6 {
		return seed, head, false
	}
	var err error
	if head.seq, err = strconv.ParseInt(string(parts[3]), 10, 64); err != nil {
		return seed, head, false
	}
	ok = seed.UnmarshalText(parts[2]) == nil && head.hash.UnmarshalText(parts[4]) == nil
	return seed, head, ok && bytes.Equal(formatFirstLine(seed, head), text)
}

// readResult is the result of reading the file.
type readResult struct {
	entries          fileEntries
	restrictionsLost bool
	exists           bool   // the file exists
	damage           string // description of the damage; "" if there is none
	seed             sha256Digest
	head             chainLink
	size             int64 // size of the undamaged part
}

// isIntact reports whether the file is complete.
func (r readResult) isIntact() bool { return r.exists && r.damage == "" }

func (r *readResult) parse(text []byte) {
	if len(text) > maxFile {
		r.markDamaged("it is too large")
		text = text[:maxFile]
	}
	synced, known := chainLink{}, false
	if first := text[:min(len(text), firstLen)]; len(first) == firstLen {
		r.seed, synced, known = parseFirstLine(first)
	}
	if !known {
		r.markDamaged("its first line cannot be read")
	}
	rest := text[min(len(text), firstLen):]
	r.size = int64(len(text) - len(rest))
	r.head = chainLink{0, r.seed}
	for {
		whole, after, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			break // nothing, or a partial line from a crash
		}
		known = r.parseLine(whole, known)
		r.size += int64(len(rest) - len(after))
		rest = after
	}
	if r.head.seq < synced.seq {
		r.markDamaged(fmt.Sprintf("%d lines are missing at its end", synced.seq-r.head.seq))
	}
}

// parseLine parses one line. prev reports whether the hash of the previous line is known; known reports the same for
// this line.
func (r *readResult) parseLine(text []byte, prev bool) (known bool) {
	r.head.seq++
	hash, data, _ := bytes.Cut(text, []byte{' '})
	var h sha256Digest
	known = h.UnmarshalText(hash) == nil
	good := known && prev && chainHash(r.head.hash, data) == h
	r.head.hash = h
	var l fileLine
	ok := json.Unmarshal(data, &l) == nil && l.isValid()
	if good && ok {
		r.restrictionsLost = r.restrictionsLost || l.RestrictionsLost
		r.entries.applyLine(l)
		return true
	}
	r.markDamaged(fmt.Sprintf("line %d cannot be read or is at the wrong position", r.head.seq+1))
	if ok {
		r.applyRestrictions(l)
	}
	return known
}

// applyRestrictions applies only the restrictions of a line that cannot be trusted.
func (r *readResult) applyRestrictions(l fileLine) {
	if l.Forget || l.Server == "" {
		return
	}
	was := r.entries.get(l.decisionKey)
	l.Block = cmp.Or(l.Block, was.Block)
	l.Off = cmp.Or(l.Off, was.Off)
	l.Was = cmp.Or(was.Was, l.Was)
	r.entries.applyLine(l)
}

func (r *readResult) markDamaged(what string) {
	if r.damage == "" {
		r.damage = what
	}
}
