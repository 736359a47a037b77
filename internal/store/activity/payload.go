package activity

import (
	"cmp"
	"encoding/json"
	"time"
)

// payload is the decoded JSON of an entry. For an outcome, Record contains only the fields of the outcome. Its Metadata
// then contains only the error code and the warnings.
type payload struct {
	Record
	kind EntryKind
	seq  int64 // only read, like ID and Timestamp, because the spool writes them
	of   int64
	// check is the check that refused the call after it had waited. It is set only in an outcome.
	check string
}

// newOutcomePayload returns the payload of an outcome.
func newOutcomePayload(of int64, o *Outcome) payload {
	return payload{kind: KindEnd, of: of, check: o.Check, Record: Record{
		Status: o.Status, Response: o.Response, ResponseBytes: o.ResponseBytes, ErrorMessage: o.ErrorMessage,
		DurationMS: o.Duration.Milliseconds(), OwnUS: (o.Own + time.Microsecond - 1).Microseconds(), Metadata: Metadata{ErrorCode: o.ErrorCode, Warnings: o.Warnings},
	}}
}

// withoutResponse returns a copy of an outcome without its response.
func (p payload) withoutResponse() *payload {
	p.Response, p.ResponseTruncated = nil, true
	return &p
}

// readErasableFields decodes the values of an erasable part. It returns arguments and response unparsed.
func (p *payload) readErasableFields(open []byte) (args, response []byte, err error) {
	read := func(value []byte, to any) { err = cmp.Or(err, json.Unmarshal(value, to)) }
	ok := eachStoredField(open, func(f storedField) {
		if f.erasedTimeText() != nil {
			at, _ := f.parseErasedTime() // an invalid time is shown as the zero time
			p.Erased = append(p.Erased, Erased{f.name, at})
			return
		}
		switch v := f.jsonValue(); f.name {
		case FieldArguments:
			args = v
		case FieldResponse:
			response = v
		case FieldError:
			read(v, &p.ErrorMessage)
		case FieldReason:
			read(v, &p.ensureIntent().Reason)
		case FieldDeclared:
			p.ensureIntent().Declared = toValidJSON(v)
		case FieldQuery:
			if p.Metadata.Search == nil {
				p.Metadata.Search = &Search{}
			}
			read(v, &p.Metadata.Search.Query)
		case FieldWarnings:
			read(v, &p.Metadata.Warnings)
		}
	})
	if !ok {
		err = cmp.Or(err, errMalformedPayload)
	}
	return args, response, err
}

func (p *payload) ensureIntent() *Intent {
	if p.Metadata.Intent == nil {
		p.Metadata.Intent = &Intent{}
	}
	return p.Metadata.Intent
}

// requestedErasure returns the erasure that the payload records, without the time.
func (p *payload) requestedErasure() *FieldErasure {
	said := p.Metadata.Redacted
	if p.kind != KindWhole || said == nil {
		return nil
	}
	return &FieldErasure{ID: said.ID, Fields: said.Fields}
}
