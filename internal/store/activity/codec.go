package activity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// memberWriter writes the members of a JSON object, each with a comma before it. It does not use encoding/json, because
// every call writes two entries.
type memberWriter struct{ out []byte }

func (w *memberWriter) writeName(name string) {
	w.out = append(append(append(w.out, `,"`...), name...), `":`...)
}

func (w *memberWriter) writeText(name, text string) {
	w.writeName(name)
	w.out = wirejson.AppendString(w.out, text)
}

// writeTextIfSet writes a text unless it is empty.
func (w *memberWriter) writeTextIfSet(name, text string) {
	if text != "" {
		w.writeText(name, text)
	}
}

func (w *memberWriter) writeNumber(name string, n int64) {
	w.writeName(name)
	w.out = strconv.AppendInt(w.out, n, 10)
}

// writeNumberIfSet writes a number unless it is 0.
func (w *memberWriter) writeNumberIfSet(name string, n int64) {
	if n != 0 {
		w.writeNumber(name, n)
	}
}

// writeFlagIfSet writes true, or nothing.
func (w *memberWriter) writeFlagIfSet(name string, flag bool) {
	if flag {
		w.writeName(name)
		w.out = append(w.out, "true"...)
	}
}

func (w *memberWriter) writeTime(name string, t time.Time) {
	w.writeName(name)
	w.out = append(t.UTC().AppendFormat(append(w.out, '"'), time.RFC3339Nano), '"')
}

// writeObject writes an object whose members the function members writes. It does not write an object without members.
func (w *memberWriter) writeObject(name string, members func()) {
	start := len(w.out)
	w.writeName(name)
	w.out = append(w.out, '{')
	first := len(w.out)
	if members(); len(w.out) == first {
		w.out = w.out[:start]
		return
	}
	w.out = append(slices.Delete(w.out, first, first+1), '}') // removes the comma before the first member
}

// writeTextsIfSet writes a list of texts unless it is empty.
func writeTextsIfSet[T ~string](w *memberWriter, name string, texts []T) {
	if len(texts) > 0 {
		w.writeName(name)
		w.out = appendTextArray(w.out, texts)
	}
}

func appendTextArray[T ~string](dst []byte, texts []T) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wirejson.AppendString(dst, text)
	}
	return append(dst, ']')
}

var kindNames = [...]string{KindBegin: "begin", KindEnd: "end", KindWhole: "record", KindRepeat: "repeat"}

// writeMembers writes the members of the sealed part after the kind. sealedPart reads them.
func (p *payload) writeMembers(w *memberWriter) {
	switch p.kind {
	case KindEnd:
		w.writeNumber("of", p.of)
		w.writeTextIfSet("status", string(p.Status))
		w.writeNumberIfSet("duration_ms", p.DurationMS)
		w.writeNumberIfSet("own_us", p.OwnUS)
		w.writeNumberIfSet("response_bytes", p.ResponseBytes)
		w.writeTextIfSet("error_code", p.Metadata.ErrorCode)
		w.writeTextIfSet("check", p.check)
		w.writeFlagIfSet("response_truncated", p.ResponseTruncated)
	case KindRepeat:
		w.writeNumber("of", p.of)
		w.writeNumber("repeated", p.Repeated)
		w.writeTime("last_time", *p.LastTime)
	default:
		w.writeTextIfSet("type", string(p.Type))
		w.writeTextIfSet("status", string(p.Status))
		w.writeTextIfSet("server_name", p.ServerName)
		w.writeTextIfSet("tool_name", p.ToolName)
		w.writeFlagIfSet("arguments_truncated", p.ArgumentsTruncated)
		w.writeFlagIfSet("response_truncated", p.ResponseTruncated)
		w.writeNumberIfSet("duration_ms", p.DurationMS)
		w.writeNumberIfSet("own_us", p.OwnUS)
		w.writeNumberIfSet("request_bytes", p.RequestBytes)
		w.writeNumberIfSet("response_bytes", p.ResponseBytes)
		w.writeTextIfSet("session_id", p.SessionID)
		w.writeTextIfSet("request_id", p.RequestID)
		w.writeTextIfSet("parent_id", p.ParentID)
		w.writeTextIfSet("source", string(p.Source))
		w.writeTextIfSet("actor", p.Actor)
		w.writeTextIfSet("client_name", p.ClientName)
		w.writeTextIfSet("client_version", p.ClientVersion)
		w.writeObject("metadata", func() { p.Metadata.writeMembers(w) })
	}
}

func (m *Metadata) writeMembers(w *memberWriter) {
	if in := m.Intent; in != nil {
		w.writeObject("intent", func() {
			w.writeText("operation_type", in.OperationType)
			w.writeTextIfSet("data_sensitivity", in.DataSensitivity)
		})
	}
	w.writeTextIfSet("tool_variant", m.ToolVariant)
	w.writeTextIfSet("error_code", m.ErrorCode)
	if m.Decision != nil {
		w.writeObject("decision", func() { m.Decision.writeMembers(w) })
	}
	if m.Search != nil {
		w.writeObject("search", func() { w.writeNumberIfSet("rank", int64(m.Search.Rank)) })
	}
	w.writeTextIfSet("action", m.Action)
	w.writeTextIfSet("detail", m.Detail)
	if m.Redacted != nil {
		w.writeObject("redacted", func() {
			w.writeTextIfSet("id", m.Redacted.ID)
			writeTextsIfSet(w, "fields", m.Redacted.Fields)
		})
	}
}

func (d *Decision) writeMembers(w *memberWriter) {
	if d.Outcome != Allowed { // "allowed" is omitted, because most calls are allowed
		w.writeTextIfSet("outcome", string(d.Outcome))
	}
	w.writeTextIfSet("check", d.Check)
	if d.Called != "" {
		w.writeText("how", d.callFlags())
	}
	w.writeTextIfSet("alias", d.Alias)
	w.writeTextIfSet("status", d.Status)
	writeTextsIfSet(w, "further_statuses", d.Further)
	if l := d.Lane; l != nil {
		flags := ""
		if l.Declared {
			flags += "d"
		}
		if l.Unread {
			flags += "u"
		}
		writeTextsIfSet(w, "lane", []string{l.Operation, l.Word, l.By, l.Argument, flags})
	}
	w.writeTextIfSet("approval", d.Approval)
	w.writeTextIfSet("profile", d.Profile)
	w.writeTextIfSet("config_revision", d.ConfigRevision)
	w.out = d.DecisionFacts.AppendRecordMembers(w.out)
}

// callFlags returns three values of a decision as one letter each, to save space, because every call has them. The
// letters are the first letter of the call style, d if an operation was declared, and the first letter of the schema
// fit. A hyphen represents a missing value.
func (d *Decision) callFlags() string {
	letters := [...]byte{d.Called[0], '-', '-'}
	if d.Declared {
		letters[1] = 'd'
	}
	if d.Arguments != "" {
		letters[2] = d.Arguments[0]
	}
	return string(letters[:])
}

// setCallFlags sets the values that callFlags returned.
func (d *Decision) setCallFlags(letters string) {
	letters = (letters + "---")[:3]
	d.Called = wordByFirstLetter(letters[0], CalledInLane, CalledByName)
	d.Declared = letters[1] == 'd'
	d.Arguments = wordByFirstLetter(letters[2], ArgumentsFit, ArgumentsUnfit)
}

// wordByFirstLetter returns the word that begins with letter, or "" if there is none.
func wordByFirstLetter[T ~string](letter byte, words ...T) (none T) {
	for _, word := range words {
		if word[0] == letter {
			return word
		}
	}
	return none
}

// sealedPart reads the sealed part of a payload. Its members have the same names as in the JSON of a Record, except for
// the fields below. Earlier versions also wrote the erasable values in it.
type sealedPart struct {
	Record
	Kind string `json:"kind"`
	Seq  int64  `json:"seq"`
	Of   int64  `json:"of"`
	// An outcome has these members instead of metadata.
	ErrorCode string   `json:"error_code"`
	Check     string   `json:"check"`
	Warnings  []string `json:"warnings"`
	Metadata  struct {
		Metadata
		Decision *sealedDecision `json:"decision"`
	} `json:"metadata"`
}

// sealedDecision reads what Decision.writeMembers writes.
type sealedDecision struct {
	Decision
	How  string   `json:"how"`
	Lane []string `json:"lane"`
	// The facts have a shorter form than in REST.
	Hints      json.RawMessage `json:"hints"`
	Overridden json.RawMessage `json:"overridden"`
	ApprovedAt json.RawMessage `json:"approved_at"`
}

// readSealedPart decodes the sealed part of a payload.
func (p *payload) readSealedPart(sealed []byte) error {
	var s sealedPart
	err := json.Unmarshal(sealed, &s)
	*p = payload{Record: s.Record, kind: EntryKind(max(0, slices.Index(kindNames[:], s.Kind))), seq: s.Seq, of: s.Of, check: s.Check}
	p.Metadata = s.Metadata.Metadata
	if s.Metadata.Decision != nil {
		p.Metadata.Decision = s.Metadata.Decision.toDecision()
	}
	if p.kind == KindEnd {
		p.Metadata.ErrorCode, p.Metadata.Warnings = s.ErrorCode, s.Warnings
	}
	if err == nil && (p.kind == 0 || p.seq < 1 || len(p.ID) != ulidLen) {
		err = errMalformedPayload
	}
	return err
}

func (s *sealedDecision) toDecision() *Decision {
	d := s.Decision
	d.Outcome = cmp.Or(d.Outcome, Allowed)
	if s.How != "" {
		d.setCallFlags(s.How)
	}
	if l := s.Lane; len(l) == 5 {
		d.Lane = &ArgumentLane{l[0], l[1], l[2], l[3], strings.Contains(l[4], "d"), strings.Contains(l[4], "u")}
	}
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{{"hints", s.Hints}, {"overridden", s.Overridden}, {"approved_at", s.ApprovedAt}} {
		if m.value != nil {
			d.ReadRecordMember([]byte(m.name), m.value)
		}
	}
	return &d
}

var errMalformedPayload = errors.New("read an entry of the log: it was changed")

// toValidJSON returns a copy of raw that can be part of a record: it turns invalid JSON into a JSON string, and
// replaces invalid UTF-8 by U+FFFD.
func toValidJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return wirejson.AppendString(nil, raw)
	}
	if !utf8.Valid(raw) {
		return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return bytes.Clone(raw)
}
