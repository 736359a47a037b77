package activity

import (
	"slices"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// payload is the decoded JSON of an entry. For an outcome, Record holds only what the outcome says: of
// Metadata the error code and the warnings.
type payload struct {
	Record
	kind EntryKind
	seq  int64 // only read, like ID and Timestamp: the spool writes them
	of   int64
	// check is the check that refused the call after all; only in an outcome.
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

// codeMembers writes or reads the members after the prefix.
func (p *payload) codeMembers(c *memberCodec) {
	switch p.kind {
	case KindEnd:
		c.codeRequiredNumber(`,"of":`, &p.of)
		c.codeText(`,"status":`, (*string)(&p.Status))
		c.codeNumber(`,"duration_ms":`, &p.DurationMS)
		c.codeNumber(`,"own_us":`, &p.OwnUS)
		c.codeNumber(`,"response_bytes":`, &p.ResponseBytes)
		c.readOldText(`,"error_message":`, &p.ErrorMessage)
		c.codeText(`,"error_code":`, &p.Metadata.ErrorCode)
		c.codeText(`,"check":`, &p.check)
		c.readOldTexts(`,"warnings":`, &p.Metadata.Warnings)
		c.codeFlag(`,"response_truncated":`, &p.ResponseTruncated)
	case KindRepeat:
		c.codeRequiredNumber(`,"of":`, &p.of)
		c.codeRequiredNumber(`,"repeated":`, &p.Repeated)
		if p.LastTime == nil && c.isReadingMember(`,"last_time":`) {
			p.LastTime = new(time.Time)
		}
		if p.LastTime != nil {
			c.codeTime(`,"last_time":`, p.LastTime)
		}
		c.readOldText(`,"error_message":`, &p.ErrorMessage) // replaces that of the record
	default:
		c.codeText(`,"type":`, (*string)(&p.Type))
		c.codeText(`,"status":`, (*string)(&p.Status))
		c.codeText(`,"server_name":`, &p.ServerName)
		c.codeText(`,"tool_name":`, &p.ToolName)
		c.codeFlag(`,"arguments_truncated":`, &p.ArgumentsTruncated)
		c.codeFlag(`,"response_truncated":`, &p.ResponseTruncated)
		c.readOldText(`,"error_message":`, &p.ErrorMessage)
		c.codeNumber(`,"duration_ms":`, &p.DurationMS)
		c.codeNumber(`,"own_us":`, &p.OwnUS)
		c.codeNumber(`,"request_bytes":`, &p.RequestBytes)
		c.codeNumber(`,"response_bytes":`, &p.ResponseBytes)
		c.codeText(`,"session_id":`, &p.SessionID)
		c.codeText(`,"request_id":`, &p.RequestID)
		c.codeText(`,"parent_id":`, &p.ParentID)
		c.codeText(`,"source":`, (*string)(&p.Source))
		c.codeText(`,"actor":`, &p.Actor)
		c.codeText(`,"client_name":`, &p.ClientName)
		c.codeText(`,"client_version":`, &p.ClientVersion)
		for c.nextObjectMember(`,"metadata":`) {
			p.Metadata.codeMembers(c)
		}
	}
}

func (m *Metadata) codeMembers(c *memberCodec) {
	if m.Intent == nil && c.isReadingMember(`,"intent":`) {
		m.Intent = &Intent{}
	}
	for m.Intent != nil && c.nextObjectMember(`,"intent":`) {
		c.codeRequiredText(`,"operation_type":`, &m.Intent.OperationType)
		c.codeText(`,"data_sensitivity":`, &m.Intent.DataSensitivity)
		c.readOldText(`,"reason":`, &m.Intent.Reason)
		if c.isReadingMember(`,"declared":`) {
			m.Intent.Declared = toValidJSON(c.value)
		}
	}
	c.codeText(`,"tool_variant":`, &m.ToolVariant)
	c.readOldTexts(`,"warnings":`, &m.Warnings)
	c.codeText(`,"error_code":`, &m.ErrorCode)
	if m.Decision == nil && c.isReadingMember(`,"decision":`) {
		m.Decision = &Decision{Outcome: Allowed}
	}
	for m.Decision != nil && c.nextObjectMember(`,"decision":`) {
		m.Decision.codeMembers(c)
	}
	if m.Search == nil && c.isReadingMember(`,"search":`) {
		m.Search = &Search{}
	}
	for m.Search != nil && c.nextObjectMember(`,"search":`) {
		rank := int64(m.Search.Rank)
		c.readOldText(`,"query":`, &m.Search.Query)
		c.codeNumber(`,"rank":`, &rank)
		m.Search.Rank = int(rank)
	}
	c.codeText(`,"action":`, &m.Action)
	c.codeText(`,"detail":`, &m.Detail)
	if m.Redacted == nil && c.isReadingMember(`,"redacted":`) {
		m.Redacted = &Redacted{}
	}
	for m.Redacted != nil && c.nextObjectMember(`,"redacted":`) {
		c.codeText(`,"id":`, &m.Redacted.ID)
		m.Redacted.Fields = codeErasableFields(c, `,"fields":`, m.Redacted.Fields)
	}
}

// readErasableFields reads the values of an erasable part. It returns arguments and response unparsed.
func (p *payload) readErasableFields(open []byte) (args, response []byte, err error) {
	c := memberCodec{reading: true}
	ok := eachStoredField(open, func(f storedField) {
		if f.erasedTimeText() != nil {
			at, _ := f.parseErasedTime() // of an invalid time nothing can be shown
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

// readSealed reads the members of a well-formed payload without its raw parts.
func (p *payload) readSealed(head []byte) error {
	c := memberCodec{reading: true}
	err := wirejson.EachMember(head, func(name, value []byte) error {
		c.name, c.value = name, value
		c.codeText(`,"id":`, &p.ID)
		c.codeNumber(`,"seq":`, &p.seq)
		c.codeTime(`,"timestamp":`, &p.Timestamp)
		if c.isReadingMember(`,"kind":`) {
			p.kind = EntryKind(max(0, slices.Index(kindNames[:], string(value))))
		}
		p.codeMembers(&c)
		return c.err
	})
	if err == nil && (p.kind == 0 || p.seq < 1 || len(p.ID) != ulidLen) {
		err = errMalformedPayload
	}
	return err
}

// redaction returns what the payload erases, without the time.
func (p *payload) redaction() *Redaction {
	said := p.Metadata.Redacted
	if p.kind != KindWhole || said == nil {
		return nil
	}
	return &Redaction{ID: said.ID, Fields: said.Fields}
}

// codeErasableFields writes or reads a list of field names. An empty list is not written.
func codeErasableFields(c *memberCodec, head string, v []ErasableField) []ErasableField {
	if c.isReadingMember(head) {
		for _, text := range c.parseTexts(c.value) {
			v = append(v, ErasableField(text))
		}
	} else if !c.reading && len(v) > 0 {
		c.out = appendTextArray(append(c.out, head...), v)
	}
	return v
}
