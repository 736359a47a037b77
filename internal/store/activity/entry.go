package activity

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
	"unicode"
)

// EntryKind is what an entry of the spool says about its record.
type EntryKind uint8

// The kinds.
const (
	KindBegin  EntryKind = iota + 1 // the record began; its end is still to come
	KindEnd                         // the outcome of a record that began earlier
	KindWhole                       // a record that was complete at once
	KindRepeat                      // how often a refusal that is on record has happened by now
)

// Hash is the place of an entry in the chain: the SHA-256 of its line in the
// spool, written with the hash of the entry before in the place of its own.
type Hash [sha256.Size]byte

// writeHex writes h in hexadecimal to the beginning of dst, as hex.Encode does. A call writes
// seven of them, so it takes eight digits at a time.
func (h *Hash) writeHex(dst []byte) {
	const each = 0x0101010101010101
	dst = dst[:hexLen]
	for i := 0; i < len(h); i += 4 {
		x := uint64(binary.BigEndian.Uint32(h[i:]))
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f // a digit in each byte
		letters := (x + 6*each) >> 4 & each
		binary.BigEndian.PutUint64(dst[2*i:], x+'0'*each+letters*('a'-'0'-10))
	}
}

// chainLink is a place in the chain.
type chainLink struct {
	seq  int64
	hash Hash
}

// Entry is one link of the chain, as the Store gets it. It is valid until the
// call that got it returns.
type Entry struct {
	Seq      int64 // counts entries, one by one, from the first of the spool
	Kind     EntryKind
	ID       string // of the record
	BeginSeq int64  // KindEnd, KindRepeat: the Seq of the entry that began the record
	Hash     Hash
	Payload  []byte // JSON, as chained
	// Facts is what the record can be found by. After a restart an end may come
	// without (Facts.Type is empty): the store then takes those of the beginning,
	// WithOutcome these. A KindRepeat changes Times alone.
	Facts RecordFacts
	// Redacts is what the entry erases of another record; nil of most.
	Redacts *Redaction
	// Signature is that of the place after the entry, when it is one that is signed.
	Signature *Checkpoint

	segment int64 // where the entry ends in the spool
	offset  int64
}

// RecordFacts are the values that a record is filtered and counted by, and what else
// those are told who follow the log.
type RecordFacts struct {
	Type        Type
	Status      Status
	Server      string
	Tool        string
	Session     string
	Request     string
	Intent      string
	Sensitivity string
	Actor       string
	Client      string
	Reason      string
	ErrorCode   string // of the refusal or failure
	Time        int64  // microseconds since 1970
	Duration    int64  // milliseconds
	OwnTime     int64  // microseconds of it that were MCPProxy's; 0: not known
	Repeats     int64  // how often the refusal has happened; 0 = once
}

// WithOutcome returns the facts of a record that an entry with the facts end has ended.
func (f RecordFacts) WithOutcome(end *RecordFacts) RecordFacts {
	f.Status, f.Duration, f.OwnTime, f.ErrorCode = end.Status, end.Duration, end.OwnTime, cmp.Or(end.ErrorCode, f.ErrorCode)
	return f
}

// NewRecordFacts returns what a record is found by.
func NewRecordFacts(r *Record) RecordFacts {
	f := RecordFacts{
		Type: r.Type, Status: r.Status, Server: r.ServerName, Tool: r.ToolName,
		Session: r.SessionID, Request: r.RequestID, Actor: r.Actor, Client: r.ClientName,
		ErrorCode: r.Metadata.ErrorCode, Time: r.Timestamp.UnixMicro(), Duration: r.DurationMS, OwnTime: r.OwnUS, Repeats: r.Repeated,
	}
	if in := r.Metadata.Intent; in != nil {
		f.Intent, f.Sensitivity, f.Reason = in.OperationType, in.DataSensitivity, in.Reason
	}
	return f
}

// ChainPart is one entry as a store has it, or some in a row that are gone.
type ChainPart struct {
	First, Seq int64 // the numbers of the first and the last entry
	Hash       Hash  // of the last
	Gone       bool
	Payload    []byte // of an entry that is there; valid until the call that got it returns
	// Record is the place among all records of the one that the entry begins, from 1
	// on; 0 of an entry that begins none.
	Record int64
	// Pruned reports whether what is gone was the beginning of the log, which the retention has
	// removed.
	Pruned bool
	// Checkpoint is set for a place that was signed, which is no entry.
	Checkpoint *Checkpoint
}

// recordID returns the id of the entry's record, "" when there is none to be read.
func (p *ChainPart) recordID() string { return parseRecordID(p.Payload) }

// parseRecordID returns the id in a payload, "" when there is none to be read.
func parseRecordID(payload []byte) string {
	const at = len(`{"id":"`)
	if len(payload) < at+ulidLen || !IsIDPrefix(string(payload[at:at+ulidLen])) {
		return ""
	}
	return string(payload[at : at+ulidLen])
}

// A line of the spool is
//
//	<hash in hex> <payload>\n
//
// so that the chain can be checked with nothing but a shell: the hash of a line
// is sha256sum of "<hash of the line before> <what is chained of the payload>".
const (
	hexLen       = 2 * sha256.Size
	lineOverhead = hexLen + 2 // the blank and the newline
)

// sealLine hashes the line in buf, which holds room for the hash, the blank and what is
// chained of the payload, and writes the hash into its place.
func sealLine(buf []byte, prev Hash) Hash {
	prev.writeHex(buf)
	h := Hash(sha256.Sum256(buf))
	h.writeHex(buf)
	return h
}

// splitSpoolLine takes a line without its newline apart.
func splitSpoolLine(line []byte) (h Hash, payload []byte, ok bool) {
	if len(line) < hexLen+3 || line[hexLen] != ' ' || line[hexLen+1] != '{' || line[len(line)-1] != '}' {
		return h, nil, false
	}
	if _, err := hex.Decode(h[:], line[:hexLen]); err != nil {
		return h, nil, false
	}
	canonical := bytes.IndexFunc(line[:hexLen], unicode.IsUpper) < 0
	return h, line[hexLen+1:], canonical && bytes.IndexByte(line, '\n') < 0
}

// Checkpoint is a signed place in the chain: that the log had this entry by then, with
// everything before it.
type Checkpoint struct {
	Chain     string
	Seq       int64
	Hash      Hash
	Time      time.Time
	Pruned    bool // what is up to there was removed by the retention
	Key       []byte
	Signature []byte
}

// signedText is what is signed.
func (c *Checkpoint) signedText() []byte {
	what := "checkpoint"
	if c.Pruned {
		what = "pruned"
	}
	return fmt.Appendf(nil, "mcpproxy %s %s %d %x %d", what, c.Chain, c.Seq, c.Hash, c.Time.UnixMicro())
}

// HasValidSignature reports whether the signature is one of the key over the rest.
func (c *Checkpoint) HasValidSignature() bool {
	return len(c.Key) == ed25519.PublicKeySize && ed25519.Verify(c.Key, c.signedText(), c.Signature)
}

// Redaction is what one entry erases: fields of a record.
type Redaction struct {
	ID     string
	Fields []ErasableField
	At     time.Time // whole seconds
}

// Redaction is what the entry erases; ok is false of most.
func (e *Entry) Redaction() (r Redaction, ok bool) {
	if e.Redacts == nil {
		return r, false
	}
	return Redaction{e.Redacts.ID, e.Redacts.Fields, time.UnixMicro(e.Facts.Time).UTC().Truncate(time.Second)}, true
}
