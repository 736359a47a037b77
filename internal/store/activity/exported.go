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

// Exported is an entry as an export has it: with what is needed to prove it outside.
type Exported struct {
	Seq    int64
	Hash   Hash
	Sealed []byte // what is chained, with its commitments; nil where it would tell what is left out
	Open   []Opened

	whole []byte // see payload
}

// Opened is the text that a commitment is made of, or that takes its place when it was
// erased.
type Opened struct {
	Field Field
	Text  []byte
}

// Export returns the entries of a record as an export has them. Without bodies the texts of
// arguments and responses are left out.
func (s *Stored) Export(bodies bool) (entries []Exported) {
	for _, e := range []struct {
		payload, hash []byte
		seq           int64
	}{{s.Entry, s.Hash, s.Seq}, {s.Outcome, s.EndHash, s.EndSeq}} {
		if len(e.hash) != len(Hash{}) {
			continue
		}
		sealed, open, old := parts(e.payload)
		out := Exported{Seq: e.seq, Hash: Hash(e.hash)}
		if !old || bodies { // what is damaged is not what was chained, and is named for it
			chained, ok := appendChained([]byte{}, sealed, open)
			if out.Sealed = chained; !ok || !utf8.Valid(chained) {
				out.Sealed = bytes.ToValidUTF8(append([]byte{}, sealed...), []byte("\uFFFD"))
			}
		}
		_ = eachOpen(open, func(f openField) {
			if bodies || f.erased() != nil || f.name != FieldArguments && f.name != FieldResponse {
				out.Open = append(out.Open, Opened{f.name, bytes.TrimRight(f.inner, " ")})
			}
		})
		entries = append(entries, out)
	}
	return entries
}

// Append appends the entry as JSON.
func (e *Exported) Append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"seq":`...), e.Seq, 10)
	dst = append(hex.AppendEncode(append(dst, `,"hash":"`...), e.Hash[:]), '"')
	if e.Sealed == nil {
		return append(dst, '}')
	}
	dst = wirejson.AppendString(append(dst, `,"sealed":`...), e.Sealed)
	for i, o := range e.Open {
		head := `,"open":{`
		if i > 0 {
			head = ","
		}
		dst = append(wirejson.AppendString(append(dst, head...), string(o.Field)), ':')
		dst = wirejson.AppendString(dst, o.Text)
	}
	if len(e.Open) > 0 {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// ReadExported reads what Append has written; ok is false when it is something else. That
// Append writes the same again is for others to look at.
func ReadExported(data []byte) (e Exported, ok bool) {
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
				e.Open = append(e.Open, Opened{Field(name), []byte(text)})
				ok = ok && good
				return nil
			})
		}
		ok = ok && good
		return nil
	})
	return e, ok && err == nil
}

// payload is that of the entry, as far as it is there.
func (e *Exported) payload() []byte {
	if len(e.Open) == 0 {
		return e.Sealed
	}
	if e.whole != nil {
		return e.whole
	}
	out := append(bytes.Clone(e.Sealed), '\t')
	before := byte('{')
	for _, o := range e.Open {
		out = append(append(append(out, before, '"'), o.Field...), `":[`...)
		out = append(append(strconv.AppendInt(out, int64(len(o.Text)), 10), ','), o.Text...)
		out = append(out, ']')
		before = ','
	}
	e.whole = append(out, '}')
	return e.whole
}

// opened reports whether what is open is what was committed to, or was erased, and how many
// values are left out.
func (e *Exported) opened() (left int, ok bool) {
	sealed, open, old := parts(e.payload())
	if old {
		return 0, true
	}
	commits, ok := commitments(sealed)
	left = len(commits)
	return left, ok && eachOpen(open, func(f openField) {
		for len(commits) > 0 && commits[0].name != f.name {
			commits = commits[1:]
		}
		commit, good := f.commitment()
		ok = ok && good && len(commits) > 0 && commit == commits[0].hash
		left--
	}) && ok
}

// RecordOf is what exported entries say of their record. ok is false when that is not
// proven, or is left out.
func RecordOf(entries []Exported) (r Record, ok bool) {
	var begun, ended *payload
	for i := range entries {
		e := &entries[i]
		if e.Sealed == nil {
			return r, false
		}
		p, args, response, err := parse(e.payload(), true) // its hash is held against the next one's
		if err != nil || p.seq != e.Seq {
			return r, false
		}
		p.Arguments, p.Response = asJSON(args), asJSON(response)
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
		return begun.endedBy(ended), true
	case begun != nil:
		return begun.Record, true
	case ended != nil:
		return ended.orphan(), true
	}
	return r, false
}

// Export calls fn for every record that f selects, as Each does, with its entries. It
// returns where the log ended when that began. Where instances share a store it is about
// the records of this one: what can be proven is one chain.
func (l *Log) Export(ctx context.Context, f Filter, fn func(*Stored) error) (end Position, err error) {
	l.refusals.write(time.Now(), true) // an export tells what is in the log, and nothing of memory
	end = l.spool.mark().end
	if err := l.progress.flush(ctx); err != nil {
		return end, err
	}
	each := l.store.Each
	if s, ok := l.store.(interface {
		EachOwn(ctx context.Context, f Filter, fn func(*Stored) error) error
	}); ok {
		each = s.EachOwn
	}
	var failed error
	err = each(ctx, f.masked(), func(s *Stored) error {
		failed = fn(s)
		return failed
	})
	if failed != nil {
		return end, failed
	}
	return end, l.queryError(ctx, err)
}

// Marks calls fn for the runs of entries that are gone, and for the signed places.
func (l *Log) Marks(ctx context.Context, fn func(ChainPart) error) error {
	var failed error
	err := l.store.Marks(ctx, func(p ChainPart) error {
		failed = fn(p)
		return failed
	})
	if failed != nil {
		return failed
	}
	return l.queryError(ctx, err)
}
