package activity

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// splitOldPayload separates the unvalidated arguments and response from an entry of an earlier version. The returned
// head is a copy.
func splitOldPayload(data []byte) (head, args, response []byte, err error) {
	a, r, err := parseRawLengths(data)
	if err != nil {
		return nil, nil, nil, err
	}
	end := len(data) - 1 // offset of the last brace
	response, end, err = cutTrailingMember(data, end, responseName, r)
	if err == nil {
		args, end, err = cutTrailingMember(data, end, argumentsName, a)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	head = append(make([]byte, 0, end+1), data[:end]...)
	return append(head, '}'), args, response, nil
}

const (
	argumentsName = `,"arguments":`
	responseName  = `,"response":`
)

// parsePayload reads an entry and returns its arguments and response unparsed. p does not refer to the memory of data.
func parsePayload(data []byte) (p payload, args, response []byte, err error) {
	head, open, old := splitPayload(data)
	if old {
		head, args, response, err = splitOldPayload(data)
	}
	if err == nil {
		err = p.readSealedPart(head)
	}
	if err == nil && !old {
		args, response, err = p.readErasableFields(open)
	}
	return p, args, response, err
}

// decodePayload reads one entry completely. The result does not refer to the memory of data.
func decodePayload(data []byte) (payload, error) {
	p, args, response, err := parsePayload(data)
	p.Arguments, p.Response = toValidJSON(args), toValidJSON(response)
	return p, err
}

// parseRawLengths reads the lengths of the raw parts. They precede all text from callers and servers, so the first
// "raw" is the right one.
func parseRawLengths(data []byte) (args, response int, err error) {
	_, rest, ok := bytes.Cut(data, []byte(`"raw":[`))
	list, _, closed := bytes.Cut(rest, []byte{']'})
	first, second, pair := bytes.Cut(list, []byte{','})
	if !ok || !closed || !pair {
		return 0, 0, fmt.Errorf("read an entry of the log: its lengths are missing")
	}
	args, err1 := strconv.Atoi(string(first))
	response, err2 := strconv.Atoi(string(second))
	if err1 != nil || err2 != nil || args < 0 || response < 0 {
		return 0, 0, fmt.Errorf("read an entry of the log: its lengths are not numbers")
	}
	return args, response, nil
}

// cutTrailingMember removes the member with this name and value length that ends at end. It returns the value, and the
// length of the remaining data.
func cutTrailingMember(data []byte, end int, name string, length int) (raw []byte, rest int, err error) {
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

// DecodeRecord decodes a record from the payload of its first entry and the payload of its outcome. One of them may be
// empty. Without an outcome, the record is pending. If the first entry was lost, the record has only the fields of the
// outcome.
func DecodeRecord(entry, outcome []byte) (Record, error) {
	if len(entry) == 0 {
		return decodeLoneOutcome(outcome)
	}
	p, err := decodePayload(entry)
	if err != nil || len(outcome) == 0 {
		return p.Record, err
	}
	o, err := decodePayload(outcome)
	if err != nil {
		return p.Record, err
	}
	return p.recordWithOutcome(&o), nil
}

// recordWithOutcome returns the record with the values of the outcome o.
func (p *payload) recordWithOutcome(o *payload) Record {
	r := p.Record
	if o.kind == KindRepeat && o.LastTime != nil {
		r.setRepeats(o.Repeated, *o.LastTime, o.ErrorMessage)
		return r
	}
	for _, gone := range o.Erased {
		if !r.HasErased(gone.Field) {
			r.Erased = append(r.Erased, gone)
		}
	}
	r.Status = o.Status
	r.DurationMS, r.OwnUS = o.DurationMS, o.OwnUS
	r.Response, r.ResponseBytes, r.ResponseTruncated = o.Response, o.ResponseBytes, o.ResponseTruncated
	r.ErrorMessage = cmp.Or(o.ErrorMessage, r.ErrorMessage)
	r.Metadata.ErrorCode = cmp.Or(o.Metadata.ErrorCode, r.Metadata.ErrorCode)
	r.Metadata.Warnings = append(r.Metadata.Warnings, o.Metadata.Warnings...)
	if d := r.Metadata.Decision; d != nil && o.check != "" {
		d.Outcome, d.Check = Refused, o.check
	}
	return r
}

// DecodeForDisplay does the same as DecodeRecord, but always returns a record. A damaged record has a message about the
// damage, and the values that are still readable.
func DecodeForDisplay(entry, outcome []byte) Record {
	r, err := DecodeRecord(entry, outcome)
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

func decodeLoneOutcome(outcome []byte) (Record, error) {
	p, err := decodePayload(outcome)
	if err != nil {
		return p.Record, err
	}
	return p.recordOfLoneOutcome(), nil
}

// recordOfLoneOutcome returns the record for an outcome whose first entry was lost.
func (p *payload) recordOfLoneOutcome() Record {
	r := p.Record
	if r.Type == "" {
		r.Type = ToolCall
	}
	if ms, ok := parseULIDMillis(r.ID); ok && r.Timestamp.IsZero() {
		r.Timestamp = time.UnixMilli(ms).UTC()
	}
	r.Metadata.Detail = "The beginning of this record is lost."
	return r
}

// EachSearchableText calls fn with the JSON of each part of a record that the full text search covers. It does not
// decode other parts. The text is valid until fn returns. Damaged parts are skipped.
func EachSearchableText(entry, outcome []byte, fn func(text []byte)) {
	for _, data := range [][]byte{entry, outcome} {
		if len(data) == 0 {
			continue
		}
		head, open, old := splitPayload(data)
		if old {
			eachSearchableTextOfOldPayload(data, fn)
			continue
		}
		// If a field is damaged, the fields after it are skipped.
		_ = eachStoredField(open, func(f storedField) {
			switch {
			case f.erasedTimeText() != nil:
			case f.name == FieldArguments, f.name == FieldResponse, f.name == FieldError, f.name == FieldReason:
				fn(f.jsonValue())
			}
		})
		fn(wirejson.Find(wirejson.Find(head, "metadata"), "detail"))
	}
}

func eachSearchableTextOfOldPayload(data []byte, fn func(text []byte)) {
	head, args, response, err := splitOldPayload(data)
	if err != nil {
		return
	}
	fn(args)
	fn(response)
	fn(wirejson.Find(head, "error_message"))
	metadata := wirejson.Find(head, "metadata")
	fn(wirejson.Find(metadata, "detail"))
	fn(wirejson.Find(wirejson.Find(metadata, "intent"), "reason"))
}

// decodeSpoolEntry decodes a line of the spool into the Entry that the Store receives.
func decodeSpoolEntry(h Hash, data []byte) (Entry, error) {
	p, _, _, err := parsePayload(data)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Seq: p.seq, Kind: p.kind, ID: p.ID, BeginSeq: p.of, Hash: h, Payload: data}
	switch e.Kind {
	case KindRepeat:
		e.Facts = RecordFacts{Repeats: p.Repeated}
	case KindEnd:
		facts := NewRecordFacts(&p.Record)
		e.Facts = RecordFacts{}.WithOutcome(&facts)
	default:
		e.Facts, e.Redacts = NewRecordFacts(&p.Record), p.requestedErasure()
	}
	return e, nil
}
