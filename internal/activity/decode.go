package activity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// payload is what the JSON of an entry holds, without the raw parts at its end.
type payload struct {
	Record
	Seq       int64  `json:"seq"`
	Kind      string `json:"kind"`
	Of        int64  `json:"of"`
	ErrorCode string `json:"error_code"`
	// Warnings are those that the outcome adds.
	Warnings []string `json:"warnings"`
	Raw      [2]int   `json:"raw"`
}

func (p *payload) kind() Kind {
	switch p.Kind {
	case "begin":
		return KindBegin
	case "end":
		return KindEnd
	case "record":
		return KindWhole
	}
	return 0
}

// decodePayload reads one entry. The result holds no reference to data.
func decodePayload(data []byte) (payload, error) {
	var p payload
	args, response, err := rawLengths(data)
	if err != nil {
		return p, err
	}
	end := len(data) - 1 // before the last brace
	r, end, err := cutRaw(data, end, responseName, response)
	if err != nil {
		return p, err
	}
	a, end, err := cutRaw(data, end, argumentsName, args)
	if err != nil {
		return p, err
	}
	head := append(bytes.Clone(data[:end]), '}')
	if err := json.Unmarshal(head, &p); err != nil {
		return p, fmt.Errorf("read an entry of the log: %w", err)
	}
	if p.kind() == 0 {
		return p, fmt.Errorf("read an entry of the log: kind %q is unknown", p.Kind)
	}
	p.Arguments, p.Response = asJSON(a), asJSON(r)
	return p, nil
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

// asJSON copies raw. What turns out to be no JSON is kept as a string, so that
// a record can always be encoded.
func asJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if json.Valid(raw) {
		return bytes.Clone(raw)
	}
	return appendString(nil, string(raw))
}

// Decode reads a record from the payload of the entry that began it (or held it
// whole) and that of its outcome. One of them may be empty: without an outcome
// the record is as it was begun; an outcome alone, whose beginning was lost,
// gives what it says.
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
	r.Status = o.Status
	r.DurationMS = o.DurationMS
	r.Response, r.ResponseBytes, r.ResponseTruncated = o.Response, o.ResponseBytes, o.ResponseTruncated
	if o.ErrorMessage != "" {
		r.ErrorMessage = o.ErrorMessage
	}
	if o.ErrorCode != "" {
		r.Metadata.ErrorCode = o.ErrorCode
	}
	r.Metadata.Warnings = append(r.Metadata.Warnings, o.Warnings...)
	return r, nil
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
	r.Metadata.ErrorCode = p.ErrorCode
	r.Metadata.Warnings = p.Warnings
	r.Metadata.Detail = "The beginning of this record is lost."
	return r, nil
}

// decodeEntry reads an entry from the spool into what the Store gets.
func decodeEntry(h Hash, data []byte) (Entry, error) {
	p, err := decodePayload(data)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Seq: p.Seq, Kind: p.kind(), ID: p.ID, Of: p.Of, Hash: h, Payload: data}
	if e.Kind == KindEnd {
		e.Facts = Facts{Status: p.Status, Duration: p.DurationMS}
	} else {
		e.Facts = factsOf(&p.Record)
	}
	return e, nil
}
