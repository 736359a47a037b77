package activity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/rawjson"
)

// payload is what the JSON of an entry holds, without the raw parts at its end.
// of, code and warnings are what only an outcome has.
type payload struct {
	Record
	seq      int64
	kind     Kind
	of       int64
	code     string
	warnings []string
}

var errPayload = errors.New("read an entry of the log: it is not as it was written")

// takeApart cuts the raw parts, which nobody has checked, off an entry. head is
// a copy.
func takeApart(data []byte) (head, args, response []byte, err error) {
	a, r, err := rawLengths(data)
	if err != nil {
		return nil, nil, nil, err
	}
	end := len(data) - 1 // before the last brace
	response, end, err = cutRaw(data, end, responseName, r)
	if err == nil {
		args, end, err = cutRaw(data, end, argumentsName, a)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	head = append(make([]byte, 0, end+1), data[:end]...)
	return append(head, '}'), args, response, nil
}

// decodePayload reads one entry. The result holds no reference to data.
func decodePayload(data []byte) (payload, error) {
	var p payload
	head, args, response, err := takeApart(data)
	if err != nil {
		return p, err
	}
	if !json.Valid(head) {
		return p, errPayload
	}
	err = p.read(head)
	p.Arguments, p.Response = asJSON(args), asJSON(response)
	return p, err
}

// read reads the members of a well-formed head.
func (p *payload) read(head []byte) error {
	err := rawjson.Members(head, p.member)
	if err == nil && (p.kind == 0 || p.seq < 1 || len(p.ID) != ulidLen) {
		err = errPayload
	}
	return err
}

func (p *payload) member(name, value []byte) error {
	if to := p.number(string(name)); to != nil {
		return decodeInt(value, to)
	}
	if to := p.text(string(name)); to != nil {
		return decodeString(value, to)
	}
	switch string(name) {
	case "kind":
		p.kind = kindOf(string(value))
	case "type":
		return decodeString(value, (*string)(&p.Type))
	case "status":
		return decodeString(value, (*string)(&p.Status))
	case "source":
		return decodeString(value, (*string)(&p.Source))
	case "timestamp":
		var text string
		if err := decodeString(value, &text); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		p.Timestamp = t
		return err
	case "last_time":
		var text string
		if err := decodeString(value, &text); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		p.LastTime = &t
		return err
	case "arguments_truncated":
		p.ArgumentsTruncated = string(value) == "true"
	case "response_truncated":
		p.ResponseTruncated = string(value) == "true"
	case "warnings":
		return decodeStrings(value, &p.warnings)
	case "metadata":
		return rawjson.Members(value, p.metadata)
	}
	return nil
}

func (p *payload) number(name string) *int64 {
	switch name {
	case "seq":
		return &p.seq
	case "of":
		return &p.of
	case "duration_ms":
		return &p.DurationMS
	case "request_bytes":
		return &p.RequestBytes
	case "response_bytes":
		return &p.ResponseBytes
	case "repeated":
		return &p.Repeated
	}
	return nil
}

func (p *payload) text(name string) *string {
	switch name {
	case "id":
		return &p.ID
	case "server_name":
		return &p.ServerName
	case "tool_name":
		return &p.ToolName
	case "error_message":
		return &p.ErrorMessage
	case "error_code":
		return &p.code
	case "session_id":
		return &p.SessionID
	case "request_id":
		return &p.RequestID
	case "parent_id":
		return &p.ParentID
	case "actor":
		return &p.Actor
	case "client_name":
		return &p.ClientName
	case "client_version":
		return &p.ClientVersion
	}
	return nil
}

func (p *payload) metadata(name, value []byte) error {
	m := &p.Metadata
	switch string(name) {
	case "intent":
		m.Intent = &Intent{}
		return rawjson.Members(value, m.Intent.member)
	case "search":
		m.Search = &Search{}
		return rawjson.Members(value, m.Search.member)
	case "tool_variant":
		return decodeString(value, &m.ToolVariant)
	case "warnings":
		return decodeStrings(value, &m.Warnings)
	case "error_code":
		return decodeString(value, &m.ErrorCode)
	case "action":
		return decodeString(value, &m.Action)
	case "detail":
		return decodeString(value, &m.Detail)
	}
	return nil
}

func (in *Intent) member(name, value []byte) error {
	switch string(name) {
	case "operation_type":
		return decodeString(value, &in.OperationType)
	case "data_sensitivity":
		return decodeString(value, &in.DataSensitivity)
	case "reason":
		return decodeString(value, &in.Reason)
	}
	return nil
}

func (s *Search) member(name, value []byte) error {
	switch string(name) {
	case "query":
		return decodeString(value, &s.Query)
	case "rank":
		var rank int64
		err := decodeInt(value, &rank)
		s.Rank = int(rank)
		return err
	}
	return nil
}

func kindOf(value string) Kind {
	switch value {
	case `"begin"`:
		return KindBegin
	case `"end"`:
		return KindEnd
	case `"record"`:
		return KindWhole
	case `"repeat"`:
		return KindRepeat
	}
	return 0
}

func decodeInt(value []byte, to *int64) error {
	v, ok := rawjson.Int(value)
	if *to = v; !ok {
		return errPayload
	}
	return nil
}

func decodeString(value []byte, to *string) error {
	v, ok := rawjson.String(value)
	if *to = v; !ok {
		return errPayload
	}
	return nil
}

func decodeStrings(value []byte, to *[]string) error {
	return rawjson.Elements(value, func(value []byte) error {
		*to = append(*to, "")
		return decodeString(value, &(*to)[len(*to)-1])
	})
}

// rawLengths finds the lengths of the raw parts. They stand before anything
// that a caller or a server wrote, so the first "raw" is the right one.
func rawLengths(data []byte) (args, response int, err error) {
	_, rest, ok := bytes.Cut(data, []byte(`"raw":[`))
	list, _, closed := bytes.Cut(rest, []byte{']'})
	first, second, pair := bytes.Cut(list, []byte{','})
	if !ok || !closed || !pair {
		return 0, 0, fmt.Errorf("read an entry of the log: it does not give its lengths")
	}
	args, err1 := strconv.Atoi(string(first))
	response, err2 := strconv.Atoi(string(second))
	if err1 != nil || err2 != nil || args < 0 || response < 0 {
		return 0, 0, fmt.Errorf("read an entry of the log: its lengths are not numbers")
	}
	return args, response, nil
}

// cutRaw takes the member with this name and length from before end.
func cutRaw(data []byte, end int, name string, length int) (raw []byte, rest int, err error) {
	if length == 0 {
		return nil, end, nil
	}
	at := end - length
	start := at - len(name)
	if length > end || start < 0 || string(data[start:at]) != name {
		return nil, 0, fmt.Errorf("read an entry of the log: %d bytes of %s do not fit", length, name)
	}
	return data[at:end], start, nil
}

// asJSON copies raw. What turns out to be no JSON is kept as a string, and what
// is not UTF-8 becomes U+FFFD, so that a record can always be encoded.
func asJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return rawjson.AppendString(nil, raw)
	}
	if !utf8.Valid(raw) {
		return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return bytes.Clone(raw)
}

// Decode reads a record from the payload of the entry that began it (or held it
// whole) and that of its outcome. One of them may be empty: without an outcome
// the record is as it was begun; of an outcome alone, whose beginning was lost,
// it has what that says.
func Decode(entry, outcome []byte) (Record, error) {
	if len(entry) == 0 {
		return decodeOrphan(outcome)
	}
	p, err := decodePayload(entry)
	if err != nil || len(outcome) == 0 {
		return p.Record, err
	}
	o, err := decodePayload(outcome)
	if err != nil {
		return p.Record, err
	}
	r := p.Record
	if o.kind == KindRepeat && o.LastTime != nil {
		r.repeat(o.Repeated, *o.LastTime, o.ErrorMessage)
		return r, nil
	}
	r.Status = o.Status
	r.DurationMS = o.DurationMS
	r.Response, r.ResponseBytes, r.ResponseTruncated = o.Response, o.ResponseBytes, o.ResponseTruncated
	if o.ErrorMessage != "" {
		r.ErrorMessage = o.ErrorMessage
	}
	if o.code != "" {
		r.Metadata.ErrorCode = o.code
	}
	r.Metadata.Warnings = append(r.Metadata.Warnings, o.warnings...)
	return r, nil
}

// DecodeAny is Decode for a record that has to be shown in any case: one that is
// damaged says so, and has what can still be read.
func DecodeAny(entry, outcome []byte) Record {
	r, err := Decode(entry, outcome)
	if err == nil {
		return r
	}
	if r.Type == "" {
		r.Type = System
	}
	r.Status = Failed
	r.ErrorMessage = "This record is damaged in the database. " + r.ErrorMessage
	r.Metadata.Detail = err.Error()
	return r
}

func decodeOrphan(outcome []byte) (Record, error) {
	p, err := decodePayload(outcome)
	if err != nil {
		return p.Record, err
	}
	r := p.Record
	if r.Type == "" {
		r.Type = ToolCall
	}
	if ms, ok := ulidMillis(r.ID); ok && r.Timestamp.IsZero() {
		r.Timestamp = time.UnixMilli(ms).UTC()
	}
	r.Metadata.ErrorCode, r.Metadata.Warnings = p.code, p.warnings
	r.Metadata.Detail = "The beginning of this record is lost."
	return r, nil
}

// Texts calls fn with the JSON of everything of a record that a full text search
// looks at, without reading the rest. What fn gets is valid until it returns. Of
// an entry that is damaged there is nothing to search.
func Texts(entry, outcome []byte, fn func(text []byte)) {
	for _, data := range [][]byte{entry, outcome} {
		if len(data) == 0 {
			continue
		}
		head, args, response, err := takeApart(data)
		if err != nil {
			continue
		}
		fn(args)
		fn(response)
		fn(rawjson.Find(head, "error_message"))
		metadata := rawjson.Find(head, "metadata")
		fn(rawjson.Find(metadata, "detail"))
		fn(rawjson.Find(rawjson.Find(metadata, "intent"), "reason"))
	}
}

// decodeEntry reads an entry from the spool into what the Store gets. trusted
// says that its hash was checked.
func decodeEntry(h Hash, data []byte, trusted bool) (Entry, error) {
	head, _, _, err := takeApart(data)
	if err != nil {
		return Entry{}, err
	}
	if !trusted && !json.Valid(head) {
		return Entry{}, errPayload
	}
	var p payload
	if err := p.read(head); err != nil {
		return Entry{}, err
	}
	e := Entry{Seq: p.seq, Kind: p.kind, ID: p.ID, Of: p.of, Hash: h, Payload: data}
	switch e.Kind {
	case KindRepeat:
	case KindEnd:
		e.Facts = Facts{Status: p.Status, Duration: p.DurationMS}
	default:
		e.Facts = factsOf(&p.Record)
	}
	return e, nil
}
