package activity

import (
	"slices"
	"time"

	"mcpproxy/internal/mcp/wirejson"
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

var kindNames = [...]string{KindBegin: `"begin"`, KindEnd: `"end"`, KindWhole: `"record"`, KindRepeat: `"repeat"`}

// readOrWriteMembers writes all members after the prefix, or reads one of them.
func (p *payload) readOrWriteMembers(c *jsonMemberCodec) {
	switch p.kind {
	case KindEnd:
		c.readOrWriteRequiredNumber(`,"of":`, &p.of)
		c.readOrWriteText(`,"status":`, (*string)(&p.Status))
		c.readOrWriteNumber(`,"duration_ms":`, &p.DurationMS)
		c.readOrWriteNumber(`,"own_us":`, &p.OwnUS)
		c.readOrWriteNumber(`,"response_bytes":`, &p.ResponseBytes)
		c.readTextOfOldFormat(`,"error_message":`, &p.ErrorMessage)
		c.readOrWriteText(`,"error_code":`, &p.Metadata.ErrorCode)
		c.readOrWriteText(`,"check":`, &p.check)
		c.readTextsOfOldFormat(`,"warnings":`, &p.Metadata.Warnings)
		c.readOrWriteFlag(`,"response_truncated":`, &p.ResponseTruncated)
	case KindRepeat:
		c.readOrWriteRequiredNumber(`,"of":`, &p.of)
		c.readOrWriteRequiredNumber(`,"repeated":`, &p.Repeated)
		if p.LastTime == nil && c.isReadingMember(`,"last_time":`) {
			p.LastTime = new(time.Time)
		}
		if p.LastTime != nil {
			c.readOrWriteTime(`,"last_time":`, p.LastTime)
		}
		c.readTextOfOldFormat(`,"error_message":`, &p.ErrorMessage) // replaces the message of the record
	default:
		c.readOrWriteText(`,"type":`, (*string)(&p.Type))
		c.readOrWriteText(`,"status":`, (*string)(&p.Status))
		c.readOrWriteText(`,"server_name":`, &p.ServerName)
		c.readOrWriteText(`,"tool_name":`, &p.ToolName)
		c.readOrWriteFlag(`,"arguments_truncated":`, &p.ArgumentsTruncated)
		c.readOrWriteFlag(`,"response_truncated":`, &p.ResponseTruncated)
		c.readTextOfOldFormat(`,"error_message":`, &p.ErrorMessage)
		c.readOrWriteNumber(`,"duration_ms":`, &p.DurationMS)
		c.readOrWriteNumber(`,"own_us":`, &p.OwnUS)
		c.readOrWriteNumber(`,"request_bytes":`, &p.RequestBytes)
		c.readOrWriteNumber(`,"response_bytes":`, &p.ResponseBytes)
		c.readOrWriteText(`,"session_id":`, &p.SessionID)
		c.readOrWriteText(`,"request_id":`, &p.RequestID)
		c.readOrWriteText(`,"parent_id":`, &p.ParentID)
		c.readOrWriteText(`,"source":`, (*string)(&p.Source))
		c.readOrWriteText(`,"actor":`, &p.Actor)
		c.readOrWriteText(`,"client_name":`, &p.ClientName)
		c.readOrWriteText(`,"client_version":`, &p.ClientVersion)
		for c.nextObjectMember(`,"metadata":`) {
			p.Metadata.readOrWriteMembers(c)
		}
	}
}

func (m *Metadata) readOrWriteMembers(c *jsonMemberCodec) {
	if m.Intent == nil && c.isReadingMember(`,"intent":`) {
		m.Intent = &Intent{}
	}
	for m.Intent != nil && c.nextObjectMember(`,"intent":`) {
		c.readOrWriteRequiredText(`,"operation_type":`, &m.Intent.OperationType)
		c.readOrWriteText(`,"data_sensitivity":`, &m.Intent.DataSensitivity)
		c.readTextOfOldFormat(`,"reason":`, &m.Intent.Reason)
		if c.isReadingMember(`,"declared":`) {
			m.Intent.Declared = toValidJSON(c.value)
		}
	}
	c.readOrWriteText(`,"tool_variant":`, &m.ToolVariant)
	c.readTextsOfOldFormat(`,"warnings":`, &m.Warnings)
	c.readOrWriteText(`,"error_code":`, &m.ErrorCode)
	if m.Decision == nil && c.isReadingMember(`,"decision":`) {
		m.Decision = &Decision{Outcome: Allowed}
	}
	for m.Decision != nil && c.nextObjectMember(`,"decision":`) {
		m.Decision.readOrWriteMembers(c)
	}
	if m.Search == nil && c.isReadingMember(`,"search":`) {
		m.Search = &Search{}
	}
	for m.Search != nil && c.nextObjectMember(`,"search":`) {
		rank := int64(m.Search.Rank)
		c.readTextOfOldFormat(`,"query":`, &m.Search.Query)
		c.readOrWriteNumber(`,"rank":`, &rank)
		m.Search.Rank = int(rank)
	}
	c.readOrWriteText(`,"action":`, &m.Action)
	c.readOrWriteText(`,"detail":`, &m.Detail)
	if m.Redacted == nil && c.isReadingMember(`,"redacted":`) {
		m.Redacted = &Redacted{}
	}
	for m.Redacted != nil && c.nextObjectMember(`,"redacted":`) {
		c.readOrWriteText(`,"id":`, &m.Redacted.ID)
		m.Redacted.Fields = readOrWriteErasableFields(c, `,"fields":`, m.Redacted.Fields)
	}
}

// readErasableFields decodes the values of an erasable part. It returns arguments and response unparsed.
func (p *payload) readErasableFields(open []byte) (args, response []byte, err error) {
	c := jsonMemberCodec{reading: true}
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
			p.ErrorMessage = c.parseText(v)
		case FieldReason:
			p.ensureIntent().Reason = c.parseText(v)
		case FieldDeclared:
			p.ensureIntent().Declared = toValidJSON(v)
		case FieldQuery:
			if p.Metadata.Search == nil {
				p.Metadata.Search = &Search{}
			}
			p.Metadata.Search.Query = c.parseText(v)
		case FieldWarnings:
			p.Metadata.Warnings = c.parseTexts(v)
		}
	})
	c.requireValid(ok)
	return args, response, c.err
}

func (p *payload) ensureIntent() *Intent {
	if p.Metadata.Intent == nil {
		p.Metadata.Intent = &Intent{}
	}
	return p.Metadata.Intent
}

// readSealedPart decodes the members of a well-formed payload, except for its raw parts.
func (p *payload) readSealedPart(head []byte) error {
	c := jsonMemberCodec{reading: true}
	err := wirejson.EachMember(head, func(name, value []byte) error {
		c.name, c.value = name, value
		c.readOrWriteText(`,"id":`, &p.ID)
		c.readOrWriteNumber(`,"seq":`, &p.seq)
		c.readOrWriteTime(`,"timestamp":`, &p.Timestamp)
		if c.isReadingMember(`,"kind":`) {
			p.kind = EntryKind(max(0, slices.Index(kindNames[:], string(value))))
		}
		p.readOrWriteMembers(&c)
		return c.err
	})
	if err == nil && (p.kind == 0 || p.seq < 1 || len(p.ID) != ulidLen) {
		err = errMalformedPayload
	}
	return err
}

// requestedErasure returns the erasure that the payload records, without the time.
func (p *payload) requestedErasure() *FieldErasure {
	said := p.Metadata.Redacted
	if p.kind != KindWhole || said == nil {
		return nil
	}
	return &FieldErasure{ID: said.ID, Fields: said.Fields}
}

// readOrWriteErasableFields writes or reads a list of field names. It does not write an empty list.
func readOrWriteErasableFields(c *jsonMemberCodec, head string, v []ErasableField) []ErasableField {
	if c.isReadingMember(head) {
		for _, text := range c.parseTexts(c.value) {
			v = append(v, ErasableField(text))
		}
	} else if !c.reading && len(v) > 0 {
		c.out = appendTextArray(append(c.out, head...), v)
	}
	return v
}
