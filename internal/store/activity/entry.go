package activity

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode"
)

// EntryKind is the kind of an entry: the beginning of a record, its outcome, a whole record, or a count of refusals.
type EntryKind uint8

const (
	KindBegin  EntryKind = iota + 1 // the beginning of a record; its outcome follows
	KindEnd                         // the outcome of a record that began earlier
	KindWhole                       // a whole record, with its outcome
	KindRepeat                      // the current count of a repeated refusal
)

// Hash identifies an entry and all entries before it. It is the SHA-256 of the entry's line in the spool, where the
// hash of the previous entry replaces the entry's own hash.
type Hash [sha256.Size]byte

// chainLink is the sequence number and the hash of an entry of the chain.
type chainLink struct {
	seq  int64
	hash Hash
}

// Entry is an entry of the chain in the form that the Store receives. It is valid until the receiving call returns.
type Entry struct {
	Seq      int64 // sequence number, starting at 1
	Kind     EntryKind
	ID       string // of the record
	BeginSeq int64  // KindEnd and KindRepeat: Seq of the entry that began the record
	Hash     Hash
	Payload  []byte // JSON, as in the spool
	// Facts are the values by which the record can be found. After a restart, the facts of an end may lack the values
	// of the beginning (Facts.Type is empty). The store must then combine them with the facts of the beginning, using
	// WithOutcome. A KindRepeat changes only Repeats.
	Facts RecordFacts
	// Redacts lists the fields of another record that the entry erases. It is nil for most entries.
	Redacts *FieldErasure
	// Signature is the checkpoint that signs the chain up to this entry, if there is one.
	Signature *SignedCheckpoint

	segment int64 // position in the spool at which the entry ends
	offset  int64
}

// RecordFacts contains the values by which a record is filtered and counted. Followers of the log receive them too.
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
	OwnTime     int64  // microseconds of Duration that MCPProxy itself needed; 0 if unknown
	Repeats     int64  // number of identical refusals; 0 means one
}

// WithOutcome returns the facts of a record with the beginning f and the outcome end.
func (f RecordFacts) WithOutcome(end *RecordFacts) RecordFacts {
	f.Status, f.Duration, f.OwnTime, f.ErrorCode = end.Status, end.Duration, end.OwnTime, cmp.Or(end.ErrorCode, f.ErrorCode)
	return f
}

// NewRecordFacts returns the facts of a record.
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

// ChainPart is a part of the chain in a store: an entry, a range of removed entries, or a checkpoint.
type ChainPart struct {
	First, Seq int64 // sequence numbers of the first and the last entry
	Hash       Hash  // of the last entry
	Gone       bool
	Payload    []byte // of an existing entry; valid until the receiving call returns
	// If the entry begins a record, Record is the position of that record among all records, starting at 1. Otherwise
	// it is 0.
	Record int64
	// Pruned reports whether the removed entries were the beginning of the log, which was pruned according to the
	// retention settings.
	Pruned bool
	// Checkpoint is set if this part is a checkpoint. A checkpoint is not an entry.
	Checkpoint *SignedCheckpoint
}

// recordID returns the ID of the entry's record, or "" if it is unreadable.
func (p *ChainPart) recordID() string { return parseRecordID(p.Payload) }

// parseRecordID returns the ID in a payload, or "" if it is unreadable.
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
// so that a shell can check the chain. The hash of a line is the SHA-256 of the text "<hash of the previous line>
// <chained text of the payload>".
const (
	hexLen       = 2 * sha256.Size
	lineOverhead = hexLen + 2 // for the space and the newline
)

// sealLine computes the hash of the line in buf and writes it to the beginning of buf. buf must contain space for the
// hash, then a space character and the chained text of the payload.
func sealLine(buf []byte, prev Hash) Hash {
	hex.Encode(buf, prev[:])
	h := Hash(sha256.Sum256(buf))
	hex.Encode(buf, h[:])
	return h
}

// splitSpoolLine splits a line without its newline into hash and payload.
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

// SignedCheckpoint is a signature over the chain up to an entry. It proves that the log contained this entry and all
// entries before it at that time.
type SignedCheckpoint struct {
	Chain     string
	Seq       int64
	Hash      Hash
	Time      time.Time
	Pruned    bool // the entries up to this one were pruned according to the retention settings
	Key       []byte
	Signature []byte
}

// signedText returns the text that the signature covers.
func (c *SignedCheckpoint) signedText() []byte {
	what := "checkpoint"
	if c.Pruned {
		what = "pruned"
	}
	return fmt.Appendf(nil, "mcpproxy %s %s %d %x %d", what, c.Chain, c.Seq, c.Hash, c.Time.UnixMicro())
}

// hasValidSignature reports whether the signature is valid for the key and the other fields of the checkpoint.
func (c *SignedCheckpoint) hasValidSignature() bool {
	return len(c.Key) == ed25519.PublicKeySize && ed25519.Verify(c.Key, c.signedText(), c.Signature)
}

// FieldErasure describes which fields of a record an entry erases.
type FieldErasure struct {
	ID     string
	Fields []ErasableField
	At     time.Time // whole seconds
}

// RequestedErasure returns the erasure that the entry requests. ok is false for most entries.
func (e *Entry) RequestedErasure() (r FieldErasure, ok bool) {
	if e.Redacts == nil {
		return r, false
	}
	return FieldErasure{e.Redacts.ID, e.Redacts.Fields, time.UnixMicro(e.Facts.Time).UTC().Truncate(time.Second)}, true
}
