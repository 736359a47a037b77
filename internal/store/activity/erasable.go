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

// The payload of an entry has two parts, separated by a tab, which no JSON of this package contains. The sealed part is
// one JSON object, which is chained. The erasable part is an object of values that a user may erase later. Each value
// is stored as
//
//	"<field>":[<length>,"<salt>",<value>]
//
// The commitment to a value is the SHA-256 of the <length> bytes from the opening quote of the salt to the end of the
// value. Values are stored unchanged and may be invalid JSON, so only the length determines where they end. The chained
// text is the sealed part with the commitments as its last member, "commit". The commitments are not stored, because
// they can be computed from the values. When a field is erased, the text
//
//	"<time> <commitment>"
//
// replaces its salt and value, followed by spaces if these were longer. The salt of a short value ends with spaces, so
// that a field is never shorter than this text.
//
// The payload of an earlier version has only one part, which contains "raw":[…] after the kind.

const (
	commitName = `,"commit":{`
	saltText   = 22
	erasedText = "2006-01-02T15:04:05Z"
	commitText = 43 // length in base64
	// minContentLen is the minimum length of a salt and its value. It is also the length of the text that replaces them
	// when the field is erased.
	minContentLen = len(erasedText) + commitText + len(`" "`)
	// commitsMax is the maximum length of all commitments.
	commitsMax = len(commitName) + len(erasableFields)*(16+hexLen+len(`"":"",`)) + len("}}")
)

// prefixMax is the maximum length of the prefix that appendPayloadPrefix appends.
const prefixMax = 160

// saltPool contains random texts of 132 bits that were generated in advance.
type saltPool struct {
	texts [64 * saltText]byte
	left  int
}

const saltLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// appendSalt appends a salt, padded with spaces, as a JSON text.
func (s *saltPool) appendSalt(dst []byte, blanks int) []byte {
	if s.left == 0 {
		_, _ = rand.Read(s.texts[:]) // never fails
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

const spaces = "                                                                  " // minContentLen spaces

// splitPayload splits a payload into its sealed and its erasable part. open is nil if there is no erasable part. old
// reports whether an earlier version wrote the payload. In that case, the whole payload is sealed.
func splitPayload(payload []byte) (sealed, open []byte, old bool) {
	_, rest, _ := bytes.Cut(payload[:min(len(payload), prefixMax+32)], []byte(`"kind":"`))
	_, rest, _ = bytes.Cut(rest, []byte{'"'})
	if bytes.HasPrefix(rest, []byte(`,"raw":`)) {
		return payload, nil, true
	}
	sealed, open, _ = bytes.Cut(payload, []byte{'\t'})
	return sealed, open, false
}

// storedField is a field of the erasable part.
type storedField struct {
	name    ErasableField
	at      int    // offset of content
	content []byte // salt and value, or the text that replaced them when the field was erased
}

// erasedTimeText returns the text of the time at which the field was erased, or nil if the field was not erased.
func (f *storedField) erasedTimeText() []byte {
	if f.content[1+len(erasedText)] != ' ' { // a salt is longer, so the field was not erased
		return nil
	}
	return f.content[1 : 1+len(erasedText)]
}

// parseErasedTime returns the time at which the field was erased. ok is false if the time is invalid or is followed by
// anything other than spaces.
func (f *storedField) parseErasedTime() (at time.Time, ok bool) {
	at, err := time.Parse(erasedText, string(f.erasedTimeText()))
	return at, err == nil && len(bytes.TrimLeft(f.content[minContentLen:], " ")) == 0
}

// newErasedContent returns the text that replaces an erased field.
func newErasedContent(at time.Time, commit Hash) []byte {
	inner := append(at.UTC().AppendFormat([]byte{'"'}, erasedText), ' ')
	return append(base64.RawURLEncoding.AppendEncode(inner, commit[:]), '"')
}

// commitmentHash returns the commitment to the value of the field. ok is false if the field was changed.
func (f *storedField) commitmentHash() (h Hash, ok bool) {
	if f.erasedTimeText() == nil {
		return sha256.Sum256(f.content), true
	}
	var raw [len(h) + 1]byte
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], f.content[minContentLen-1-commitText:minContentLen-1])
	return Hash(raw[:len(h)]), err == nil && n == len(h)
}

// jsonValue returns the value of the field, or nil if it was erased.
func (f *storedField) jsonValue() []byte {
	if f.erasedTimeText() != nil {
		return nil
	}
	return f.content[f.saltEnd()+1:]
}

// saltEnd returns the offset of the comma after the salt, or -1 if there is no salt.
func (f *storedField) saltEnd() int {
	n := bytes.IndexByte(f.content[1:], '"') + 2
	if n < saltText+2 || n >= len(f.content) || f.content[n] != ',' || len(bytes.TrimRight(f.content[1+saltText:n-1], " ")) > 0 {
		return -1
	}
	return n
}

// parseStoredField parses the field at offset at of an erasable part. It returns the field and the offset after it. ok
// is false if the field was changed.
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

// parseFieldName returns the field with a name, or "" if the name is unknown. Unknown names are rejected because they
// could match several commitments.
func parseFieldName(name []byte) ErasableField {
	for _, f := range erasableFields {
		if string(name) == string(f) {
			return f
		}
	}
	return ""
}

// eachStoredField calls fn for each field of an erasable part. ok is false if the part was changed.
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

// appendSealedWithCommitments appends the chained text of a payload, which is the sealed part with its commitments. ok
// is false if the payload was changed.
func appendSealedWithCommitments(dst, sealed, open []byte) (_ []byte, ok bool) {
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

// fieldCommitment is the commitment to one field in a chained text.
type fieldCommitment struct {
	name ErasableField
	hash Hash
}

// parseCommitments parses the commitments of a chained text. ok is false if they were changed.
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

// erasePayloadFields returns the payload without the values of fields, and whether it contained any of them. If in is
// true, it replaces the erased values by spaces, so that the payload keeps its length.
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

// EraseFromPayload returns the payload of an entry of the record, without the values that must be erased.
func (r *FieldErasure) EraseFromPayload(payload []byte) []byte {
	erased, _ := erasePayloadFields(payload, r.Fields, r.At, false)
	return erased
}
