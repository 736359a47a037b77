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
// chained. Behind a tab, which no JSON of ours holds, is what may have to be erased
// later: an object with these values,
//
//	"<field>":[<length>,"<salt>",<value>]
//
// The commitment to a value is the SHA-256 of the <length> bytes from the salt's quote
// to the last of the value. They are as they came, so they may be no JSON: it is the
// length that says where they end. What is chained has the commitments as its last
// member, "commit". They are not stored, since they follow from the values; but of a
// field that was erased there is
//
//	"<time> <commitment>"
//
// in the place of its salt and its value, and blanks where these were longer. So that they
// never are shorter, the salt of a short value ends in blanks.
//
// Entries of earlier versions have one part, with everything in it, and say
// "raw":[…] behind their kind.

const (
	commitName = `,"commit":{`
	saltText   = 22
	erasedText = "2006-01-02T15:04:05Z"
	commitText = 43 // in base64
	// minContentLen is the least length of a salt with its value, and that of what takes their
	// place.
	minContentLen = len(erasedText) + commitText + len(`" "`)
	// commitsMax is room for all commitments.
	commitsMax = len(commitName) + len(erasableFields)*(16+hexLen+len(`"":"",`)) + len("}}")
)

// prefixMax is room for everything appendPayloadPrefix writes.
const prefixMax = 160

// saltPool are random texts of 132 bits, made beforehand.
type saltPool struct {
	texts [64 * saltText]byte
	left  int
}

const saltLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// appendSalt appends a salt with some blanks as a JSON text.
func (s *saltPool) appendSalt(dst []byte, blanks int) []byte {
	if s.left == 0 {
		_, _ = rand.Read(s.texts[:]) // it never fails
		for i, b := range s.texts {
			s.texts[i] = saltLetters[b%64]
		}
		s.left = len(s.texts)
	}
	salt := s.texts[s.left-saltText : s.left]
	dst = append(append(dst, '"'), salt...)
	clear(salt)
	s.left -= saltText
	return append(append(dst, spaces[:blanks]...), '"')
}

const spaces = "                                                                  " // minContentLen

// splitPayload takes a payload apart. open is nil when there is no such part. old reports whether
// an earlier version wrote it: then all of it is sealed.
func splitPayload(payload []byte) (sealed, open []byte, old bool) {
	_, rest, _ := bytes.Cut(payload[:min(len(payload), prefixMax+32)], []byte(`"kind":"`))
	_, rest, _ = bytes.Cut(rest, []byte{'"'})
	if bytes.HasPrefix(rest, []byte(`,"raw":`)) {
		return payload, nil, true
	}
	sealed, open, _ = bytes.Cut(payload, []byte{'\t'})
	return sealed, open, false
}

// storedField is a field as the open part has it.
type storedField struct {
	name    ErasableField
	at      int    // where inner begins
	content []byte // what is committed to, or what stands there since it was erased
}

// erasedTimeText is when the field was erased, as a text; nil when it was not.
func (f *storedField) erasedTimeText() []byte {
	if f.content[1+len(erasedText)] != ' ' { // a salt is longer
		return nil
	}
	return f.content[1 : 1+len(erasedText)]
}

// parseErasedTime is the time of erased; ok is false when it is none, or more is left than
// blanks.
func (f *storedField) parseErasedTime() (at time.Time, ok bool) {
	at, err := time.Parse(erasedText, string(f.erasedTimeText()))
	return at, err == nil && len(bytes.TrimLeft(f.content[minContentLen:], " ")) == 0
}

// newErasedContent is what takes the place of a field that is erased.
func newErasedContent(at time.Time, commit Hash) []byte {
	inner := append(at.UTC().AppendFormat([]byte{'"'}, erasedText), ' ')
	return append(base64.RawURLEncoding.AppendEncode(inner, commit[:]), '"')
}

// fieldCommitment is that to the value; ok is false when it is not as it was written.
func (f *storedField) commitmentHash() (h Hash, ok bool) {
	if f.erasedTimeText() == nil {
		return sha256.Sum256(f.content), true
	}
	var raw [len(h) + 1]byte
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], f.content[minContentLen-1-commitText:minContentLen-1])
	return Hash(raw[:len(h)]), err == nil && n == len(h)
}

// fieldValue is what the field holds; nil when it was erased.
func (f *storedField) jsonValue() []byte {
	if f.erasedTimeText() != nil {
		return nil
	}
	return f.content[f.saltEnd()+1:]
}

// saltEnd is where the comma behind the salt is; -1 when there is no salt.
func (f *storedField) saltEnd() int {
	n := bytes.IndexByte(f.content[1:], '"') + 2
	if n < saltText+2 || n >= len(f.content) || f.content[n] != ',' || len(bytes.TrimRight(f.content[1+saltText:n-1], " ")) > 0 {
		return -1
	}
	return n
}

// parseStoredField reads a field of an open part, from at on, and returns where it ends. ok is
// false when it is not as it was written.
func parseStoredField(open []byte, at int) (f storedField, next int, ok bool) {
	rest, ok := bytes.CutPrefix(open[at:], []byte{'"'})
	name, rest, found := bytes.Cut(rest, []byte(`":[`))
	number, rest, digits := bytes.Cut(rest[:min(len(rest), 1<<30)], []byte{','})
	n, err := strconv.Atoi(string(number))
	if !ok || !found || !digits || err != nil || n < minContentLen || n >= len(rest) || rest[n] != ']' || number[0] == '0' || number[0] == '+' {
		return f, 0, false
	}
	f = storedField{name: parseFieldName(name), at: len(open) - len(rest), content: rest[:n]}
	switch {
	case f.name == "" || f.content[0] != '"':
		return f, 0, false
	case f.erasedTimeText() != nil:
		ok = f.content[minContentLen-1] == '"'
	default:
		ok = f.saltEnd() > 0
	}
	return f, f.at + n + 1, ok
}

// parseFieldName returns the field with a name, "" when there is none: what is no name could
// stand for more than one commitment.
func parseFieldName(name []byte) ErasableField {
	for _, f := range erasableFields {
		if string(name) == string(f) {
			return f
		}
	}
	return ""
}

// eachStoredField calls fn for the fields of an open part. ok is false when it is not as it
// was written.
func eachStoredField(open []byte, fn func(f storedField)) (ok bool) {
	if open == nil {
		return true
	}
	if len(open) == 0 || open[0] != '{' || open[len(open)-1] != '}' {
		return false
	}
	for at := 1; ; at++ {
		f, next, ok := parseStoredField(open, at)
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

// appendChainedText appends what is chained of a payload: what is sealed, with its commitments.
// ok is false when it is not as it was written.
func appendChainedText(dst, sealed, open []byte) (_ []byte, ok bool) {
	if open == nil {
		return append(dst, sealed...), true
	}
	if len(sealed) == 0 || sealed[len(sealed)-1] != '}' {
		return dst, false
	}
	dst = append(dst, sealed[:len(sealed)-1]...)
	head, all := commitName, true
	ok = eachStoredField(open, func(f storedField) {
		commit, good := f.commitmentHash()
		dst = appendCommitment(append(dst, head...), f.name, commit)
		head, all = ",", all && good
	})
	return append(dst, "}}"...), ok && all
}

func appendCommitment(dst []byte, name ErasableField, commit Hash) []byte {
	dst = append(append(append(dst, '"'), name...), `":"`...)
	return append(hex.AppendEncode(dst, commit[:]), '"')
}

// fieldCommitment is what a chained text says of one field.
type fieldCommitment struct {
	name ErasableField
	hash Hash
}

// parseCommitments reads those of a chained text. ok is false when they are not as they were
// written.
func parseCommitments(chained []byte) (all []fieldCommitment, ok bool) {
	at := bytes.LastIndex(chained, []byte(commitName))
	if at < 0 {
		return nil, true
	}
	rest := chained[at+len(commitName):]
	for {
		name, after, found := bytes.Cut(rest, []byte(`":"`))
		if len(name) < 2 || name[0] != '"' || !found || len(after) < hexLen+3 || after[hexLen] != '"' {
			return nil, false
		}
		c := fieldCommitment{name: ErasableField(name[1:])}
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

// eraseFields returns the payload without fields, and whether it had one of them. in keeps the length of what
// is erased, which blanks take the place of.
func erasePayloadFields(payload []byte, fields []ErasableField, at time.Time, in bool) (erased []byte, had bool) {
	sealed, open, old := splitPayload(payload)
	if old || open == nil {
		return payload, false
	}
	out := append(bytes.Clone(sealed), "\t{"...)
	all := true
	ok := eachStoredField(open, func(f storedField) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		inner := f.content
		if slices.Contains(fields, f.name) {
			had = true
			commit, good := f.commitmentHash()
			inner, all = newErasedContent(at, commit), all && good
			if in {
				inner = append(inner, bytes.Repeat([]byte{' '}, len(f.content)-len(inner))...)
			}
		}
		out = append(append(append(out, '"'), f.name...), `":[`...)
		out = append(append(strconv.AppendInt(out, int64(len(inner)), 10), ','), inner...)
		out = append(out, ']')
	})
	if !ok || !all || !had {
		return payload, false
	}
	return append(out, '}'), true
}

// ErasePayload returns the payload of an entry of the record without what the redaction is about.
func (r *Redaction) ErasePayload(payload []byte) []byte {
	erased, _ := erasePayloadFields(payload, r.Fields, r.At, false)
	return erased
}
