package activity

import (
	"bytes"
	"context"
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// ExportedEntry is an entry in an export. It contains everything that is needed to verify it without the log.
type ExportedEntry struct {
	Seq    int64
	Hash   Hash
	Sealed []byte // chained text with its commitments; nil if it would reveal withheld values
	Fields []ExportedField

	whole []byte // cached by rebuildPayload
}

// ExportedField contains the salted text that a commitment covers, or the text that replaced it when the field was
// erased.
type ExportedField struct {
	Field ErasableField
	Text  []byte
}

// ExportEntries returns the entries of a record for an export. If bodies is false, it withholds arguments and
// responses.
func (s *StoredRecord) ExportEntries(bodies bool) (entries []ExportedEntry) {
	for _, e := range []struct {
		payload, hash []byte
		seq           int64
	}{{s.Entry, s.Hash, s.Seq}, {s.Outcome, s.EndHash, s.EndSeq}} {
		if len(e.hash) != len(Hash{}) {
			continue
		}
		sealed, open, old := splitPayload(e.payload)
		out := ExportedEntry{Seq: e.seq, Hash: Hash(e.hash)}
		if !old || bodies { // a damaged entry is exported unchanged, and the audit reports it
			chained, ok := appendSealedWithCommitments([]byte{}, sealed, open)
			if out.Sealed = chained; !ok || !utf8.Valid(chained) {
				out.Sealed = bytes.ToValidUTF8(append([]byte{}, sealed...), []byte("\uFFFD"))
			}
		}
		_ = eachStoredField(open, func(f storedField) {
			if bodies || f.erasedTimeText() != nil || f.name != FieldArguments && f.name != FieldResponse {
				out.Fields = append(out.Fields, ExportedField{f.name, bytes.TrimRight(f.content, " ")})
			}
		})
		entries = append(entries, out)
	}
	return entries
}

// AppendJSON appends the entry as JSON.
func (e *ExportedEntry) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"seq":`...), e.Seq, 10)
	dst = append(hex.AppendEncode(append(dst, `,"hash":"`...), e.Hash[:]), '"')
	if e.Sealed == nil {
		return append(dst, '}')
	}
	dst = wirejson.AppendString(append(dst, `,"sealed":`...), e.Sealed)
	for i, o := range e.Fields {
		head := `,"open":{`
		if i > 0 {
			head = ","
		}
		dst = append(wirejson.AppendString(append(dst, head...), string(o.Field)), ':')
		dst = wirejson.AppendString(dst, o.Text)
	}
	if len(e.Fields) > 0 {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// ParseExportedEntry parses the output of AppendJSON. ok is false for other data. It does not check that AppendJSON
// would produce exactly the same bytes. Callers that require this must compare them.
func ParseExportedEntry(data []byte) (e ExportedEntry, ok bool) {
	ok = true
	err := wirejson.EachMember(data, func(name, value []byte) error {
		var text string
		good := true
		switch string(name) {
		case "seq":
			e.Seq, good = wirejson.Int(value)
		case "hash":
			good = len(value) == hexLen+2
			if good {
				_, err := hex.Decode(e.Hash[:], value[1:hexLen+1])
				good = err == nil
			}
		case "sealed":
			text, good = wirejson.String(value)
			e.Sealed = []byte(text)
		case "open":
			return wirejson.EachMember(value, func(name, value []byte) error {
				text, good := wirejson.String(value)
				e.Fields = append(e.Fields, ExportedField{ErasableField(name), []byte(text)})
				ok = ok && good
				return nil
			})
		}
		ok = ok && good
		return nil
	})
	return e, ok && err == nil
}

// rebuildPayload returns the payload of the entry, without the withheld values.
func (e *ExportedEntry) rebuildPayload() []byte {
	if len(e.Fields) == 0 {
		return e.Sealed
	}
	if e.whole != nil {
		return e.whole
	}
	out := append(bytes.Clone(e.Sealed), '\t')
	before := byte('{')
	for _, o := range e.Fields {
		out = append(append(append(out, before, '"'), o.Field...), `":[`...)
		out = append(append(strconv.AppendInt(out, int64(len(o.Text)), 10), ','), o.Text...)
		out = append(out, ']')
		before = ','
	}
	e.whole = append(out, '}')
	return e.whole
}

// checkCommitments checks that each exported field matches its commitment or was erased. left is the number of withheld
// values.
func (e *ExportedEntry) checkCommitments() (left int, ok bool) {
	sealed, open, old := splitPayload(e.rebuildPayload())
	if old {
		return 0, true
	}
	commits, ok := parseCommitments(sealed)
	left = len(commits)
	return left, ok && eachStoredField(open, func(f storedField) {
		for len(commits) > 0 && commits[0].name != f.name {
			commits = commits[1:]
		}
		commit, good := f.commitmentHash()
		ok = ok && good && len(commits) > 0 && commit == commits[0].hash
		left--
	}) && ok
}

// DecodeExportedRecord returns the record that exported entries describe. ok is false if the entries do not prove the
// record, or withhold a part of it.
func DecodeExportedRecord(entries []ExportedEntry) (r Record, ok bool) {
	var begun, ended *payload
	for i := range entries {
		e := &entries[i]
		if e.Sealed == nil {
			return r, false
		}
		p, args, response, err := parsePayload(e.rebuildPayload())
		if err != nil || p.seq != e.Seq {
			return r, false
		}
		p.Arguments, p.Response = toValidJSON(args), toValidJSON(response)
		to := &begun
		if p.kind == KindEnd || p.kind == KindRepeat {
			to = &ended
		}
		if *to != nil {
			return r, false
		}
		*to = &p
	}
	switch {
	case begun != nil && ended != nil:
		return begun.recordWithOutcome(ended), true
	case begun != nil:
		return begun.Record, true
	case ended != nil:
		return ended.recordOfLoneOutcome(), true
	}
	return r, false
}

// EachStoredRecord calls fn with every record that f selects, and its entries. It returns the end of the log at the
// start of the call. If several instances share a store, it covers only the records of this instance, because a proof
// covers one chain.
func (l *Log) EachStoredRecord(ctx context.Context, f Filter, fn func(*StoredRecord) error) (end SpoolPosition, err error) {
	l.refusals.writeCounts(time.Now(), true) // an export covers the log, but not the counts in memory
	end = l.spool.snapshot().end
	if err := l.progress.waitProjected(ctx); err != nil {
		return end, err
	}
	each := l.store.EachRecord
	if s, ok := l.store.(SharedStore); ok {
		each = s.EachOwnRecord
	}
	var failed error
	err = each(ctx, f.withMaskedNames(), func(s *StoredRecord) error {
		failed = fn(s)
		return failed
	})
	if failed != nil {
		return end, failed
	}
	return end, l.toQueryError(ctx, err)
}

// EachGapAndCheckpoint calls fn for each range of removed entries and for each checkpoint.
func (l *Log) EachGapAndCheckpoint(ctx context.Context, fn func(ChainPart) error) error {
	var failed error
	err := l.store.EachGapAndCheckpoint(ctx, func(p ChainPart) error {
		failed = fn(p)
		return failed
	})
	if failed != nil {
		return failed
	}
	return l.toQueryError(ctx, err)
}
