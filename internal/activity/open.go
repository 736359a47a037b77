package activity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

// The payload of an entry has two parts. What is sealed is one JSON object, which is
// chained. Of a value that may have to be erased it has a commitment, in the member
// "commit", its last. Behind a tab, which no JSON of ours holds, is what is open: an
// object with these values,
//
//	"<field>":[<length>,"<salt>",<value>]
//
// where the commitment is the SHA-256 of the <length> bytes from the salt's quote to
// the last of the value. They are as they came, so they may be no JSON: it is the
// length that says where they end. Of a field that was erased there is the time in the
// place of its salt and its value, and blanks where they were longer.
//
// Entries of earlier versions have one part, with everything in it, and say
// "raw":[…] behind their kind.

const (
	commitName = `,"commit":{`
	saltBytes  = 16
	saltText   = 22 // in base64
	erasedText = "2006-01-02T15:04:05Z"
	// erasedLen is shorter than any salt with its value.
	erasedLen = len(erasedText) + 2
)

// prefixMax is room for everything appendPrefix writes.
const prefixMax = 160

// salts are random bytes, some beforehand.
type salts struct {
	random [64 * saltBytes]byte
	left   int
}

// append appends a salt as a JSON text.
func (s *salts) append(dst []byte) []byte {
	if s.left < saltBytes {
		_, _ = rand.Read(s.random[:]) // it never fails
		s.left = len(s.random)
	}
	salt := s.random[s.left-saltBytes : s.left]
	dst = append(dst, '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, salt)
	clear(salt)
	s.left -= saltBytes
	return append(dst, '"')
}

// parts takes a payload apart. old reports whether an earlier version wrote it: then all of
// it is sealed.
func parts(payload []byte) (sealed, open []byte, old bool) {
	_, rest, _ := bytes.Cut(payload[:min(len(payload), prefixMax+32)], []byte(`"kind":"`))
	_, rest, _ = bytes.Cut(rest, []byte{'"'})
	if bytes.HasPrefix(rest, []byte(`,"raw":`)) {
		return payload, nil, true
	}
	sealed, open, _ = bytes.Cut(payload, []byte{'\t'})
	return sealed, open, false
}

// openField is a field as the open part has it.
type openField struct {
	name  Field
	at    int    // where inner begins
	inner []byte // what is committed to, or the time when it was erased
}

// erased is when the field was erased, as a text; nil when it was not.
func (f *openField) erased() []byte {
	if f.inner[erasedLen-1] != '"' { // in a salt there is none
		return nil
	}
	return f.inner[1 : erasedLen-1]
}

// erasedAt is the time of erased; ok is false when it is none, or more is left than
// blanks.
func (f *openField) erasedAt() (at time.Time, ok bool) {
	at, err := time.Parse(erasedText, string(f.erased()))
	return at, err == nil && len(bytes.TrimLeft(f.inner[erasedLen:], " ")) == 0
}

// value is what the field holds.
func (f *openField) value() []byte { return f.inner[saltText+len(`"",`):] }

// nextOpen reads a field of an open part, from at on, and returns where it ends. ok is
// false when it is not as it was written.
func nextOpen(open []byte, at int) (f openField, next int, ok bool) {
	rest, ok := bytes.CutPrefix(open[at:], []byte{'"'})
	name, rest, found := bytes.Cut(rest, []byte(`":[`))
	number, rest, digits := bytes.Cut(rest[:min(len(rest), 1<<30)], []byte{','})
	n, err := strconv.Atoi(string(number))
	if !ok || !found || !digits || err != nil || n < erasedLen || n >= len(rest) || rest[n] != ']' || len(number) > 1 && number[0] == '0' || number[0] == '+' {
		return f, 0, false
	}
	f = openField{name: Field(name), at: len(open) - len(rest), inner: rest[:n]}
	if f.inner[0] != '"' || f.erased() == nil && (n < saltText+4 || f.inner[saltText+1] != '"' || f.inner[saltText+2] != ',') {
		return f, 0, false
	}
	return f, f.at + n + 1, true
}

// eachOpen calls fn for the fields of an open part. ok is false when it is not as it
// was written.
func eachOpen(open []byte, fn func(f openField)) (ok bool) {
	if len(open) == 0 {
		return true
	}
	if open[0] != '{' || open[len(open)-1] != '}' {
		return false
	}
	for at := 1; ; at++ {
		f, next, ok := nextOpen(open, at)
		if !ok {
			return false
		}
		fn(f)
		if at = next; at == len(open)-1 {
			return true
		}
		if open[at] != ',' {
			return false
		}
	}
}

// commitment is what a sealed part says of one field.
type commitment struct {
	name Field
	hash Hash
}

// commitments reads those of a sealed part. ok is false when they are not as they were
// written.
func commitments(sealed []byte) (all []commitment, ok bool) {
	at := bytes.LastIndex(sealed, []byte(commitName))
	if at < 0 {
		return nil, true
	}
	rest := sealed[at+len(commitName):]
	for {
		name, after, found := bytes.Cut(rest, []byte(`":"`))
		if len(name) < 2 || name[0] != '"' || !found || len(after) < hexLen+3 || after[hexLen] != '"' {
			return nil, false
		}
		c := commitment{name: Field(name[1:])}
		if _, err := hex.Decode(c.hash[:], after[:hexLen]); err != nil {
			return nil, false
		}
		all = append(all, c)
		switch rest = after[hexLen+1:]; {
		case string(rest) == "}}":
			return all, true
		case rest[0] != ',':
			return nil, false
		}
		rest = rest[1:]
	}
}

// opens reports whether the open part is what the sealed part commits to. Of a field that
// was erased only that is looked at: a kill may have left something of it.
func opens(sealed, open []byte) bool {
	commits, ok := commitments(sealed)
	n := 0
	return ok && eachOpen(open, func(f openField) {
		ok = ok && n < len(commits) && f.name == commits[n].name && (f.erased() != nil || sha256.Sum256(f.inner) == commits[n].hash)
		n++
	}) && ok && n == len(commits)
}

// erase returns the payload without fields, and whether it had one of them. in keeps the length of what
// is erased, which blanks take the place of.
func erase(payload []byte, fields []Field, at time.Time, in bool) (erased []byte, had bool) {
	sealed, open, old := parts(payload)
	if old || len(open) == 0 {
		return payload, false
	}
	out := append(bytes.Clone(sealed), "\t{"...)
	ok := eachOpen(open, func(f openField) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		inner := f.inner
		if slices.Contains(fields, f.name) {
			had = true
			inner = append(at.UTC().AppendFormat([]byte{'"'}, erasedText), '"')
			if in {
				inner = append(inner, bytes.Repeat([]byte{' '}, len(f.inner)-len(inner))...)
			}
		}
		out = append(append(append(out, '"'), f.name...), `":[`...)
		out = append(append(strconv.AppendInt(out, int64(len(inner)), 10), ','), inner...)
		out = append(out, ']')
	})
	if !ok || !had {
		return payload, false
	}
	return append(out, '}'), true
}

// Erase returns the payload of an entry of the record without what the redaction is about.
func (r *Redaction) Erase(payload []byte) []byte {
	erased, _ := erase(payload, r.Fields, r.At, false)
	return erased
}
