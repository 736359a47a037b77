package activity

import (
	"slices"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// payload is what the JSON of an entry holds. Of an outcome, Record has what that
// says: of Metadata the code and the warnings.
type payload struct {
	Record
	kind Kind
	seq  int64 // read only, like ID and Timestamp: the spool writes them
	of   int64
	// check is that of an outcome.
	check string
}

// ending is the payload of an outcome.
func ending(of int64, o *Outcome) payload {
	return payload{kind: KindEnd, of: of, check: o.Check, Record: Record{
		Status: o.Status, Response: o.Response, ResponseBytes: o.ResponseBytes, ErrorMessage: o.ErrorMessage,
		DurationMS: o.Duration.Milliseconds(), OwnUS: (o.Own + time.Microsecond - 1).Microseconds(), Metadata: Metadata{ErrorCode: o.ErrorCode, Warnings: o.Warnings},
	}}
}

// withoutResponse is an outcome whose response is not kept.
func (p payload) withoutResponse() *payload {
	p.Response, p.ResponseTruncated = nil, true
	return &p
}

var kinds = [...]string{KindBegin: `"begin"`, KindEnd: `"end"`, KindWhole: `"record"`, KindRepeat: `"repeat"`}

// members are those between the prefix and the raw parts.
func (p *payload) members(c *coder) {
	switch p.kind {
	case KindEnd:
		c.fullNumber(`,"of":`, &p.of)
		c.text(`,"status":`, (*string)(&p.Status))
		c.number(`,"duration_ms":`, &p.DurationMS)
		c.number(`,"own_us":`, &p.OwnUS)
		c.number(`,"response_bytes":`, &p.ResponseBytes)
		c.was(`,"error_message":`, &p.ErrorMessage)
		c.text(`,"error_code":`, &p.Metadata.ErrorCode)
		c.text(`,"check":`, &p.check)
		c.wereTexts(`,"warnings":`, &p.Metadata.Warnings)
		c.flag(`,"response_truncated":`, &p.ResponseTruncated)
	case KindRepeat:
		c.fullNumber(`,"of":`, &p.of)
		c.fullNumber(`,"repeated":`, &p.Repeated)
		if p.LastTime == nil && c.takes(`,"last_time":`) {
			p.LastTime = new(time.Time)
		}
		if p.LastTime != nil {
			c.moment(`,"last_time":`, p.LastTime)
		}
		c.was(`,"error_message":`, &p.ErrorMessage) // in the place of the record's
	default:
		c.text(`,"type":`, (*string)(&p.Type))
		c.text(`,"status":`, (*string)(&p.Status))
		c.text(`,"server_name":`, &p.ServerName)
		c.text(`,"tool_name":`, &p.ToolName)
		c.flag(`,"arguments_truncated":`, &p.ArgumentsTruncated)
		c.flag(`,"response_truncated":`, &p.ResponseTruncated)
		c.was(`,"error_message":`, &p.ErrorMessage)
		c.number(`,"duration_ms":`, &p.DurationMS)
		c.number(`,"own_us":`, &p.OwnUS)
		c.number(`,"request_bytes":`, &p.RequestBytes)
		c.number(`,"response_bytes":`, &p.ResponseBytes)
		c.text(`,"session_id":`, &p.SessionID)
		c.text(`,"request_id":`, &p.RequestID)
		c.text(`,"parent_id":`, &p.ParentID)
		c.text(`,"source":`, (*string)(&p.Source))
		c.text(`,"actor":`, &p.Actor)
		c.text(`,"client_name":`, &p.ClientName)
		c.text(`,"client_version":`, &p.ClientVersion)
		for c.object(`,"metadata":`) {
			p.Metadata.members(c)
		}
	}
}

func (m *Metadata) members(c *coder) {
	if m.Intent == nil && c.takes(`,"intent":`) {
		m.Intent = &Intent{}
	}
	for m.Intent != nil && c.object(`,"intent":`) {
		c.fullText(`,"operation_type":`, &m.Intent.OperationType)
		c.text(`,"data_sensitivity":`, &m.Intent.DataSensitivity)
		c.was(`,"reason":`, &m.Intent.Reason)
		if c.takes(`,"declared":`) {
			m.Intent.Declared = asJSON(c.value)
		}
	}
	c.text(`,"tool_variant":`, &m.ToolVariant)
	c.wereTexts(`,"warnings":`, &m.Warnings)
	c.text(`,"error_code":`, &m.ErrorCode)
	if m.Decision == nil && c.takes(`,"decision":`) {
		m.Decision = &Decision{Outcome: Allowed}
	}
	for m.Decision != nil && c.object(`,"decision":`) {
		m.Decision.members(c)
	}
	if m.Search == nil && c.takes(`,"search":`) {
		m.Search = &Search{}
	}
	for m.Search != nil && c.object(`,"search":`) {
		rank := int64(m.Search.Rank)
		c.was(`,"query":`, &m.Search.Query)
		c.number(`,"rank":`, &rank)
		m.Search.Rank = int(rank)
	}
	c.text(`,"action":`, &m.Action)
	c.text(`,"detail":`, &m.Detail)
	if m.Redacted == nil && c.takes(`,"redacted":`) {
		m.Redacted = &Redacted{}
	}
	for m.Redacted != nil && c.object(`,"redacted":`) {
		c.text(`,"id":`, &m.Redacted.ID)
		m.Redacted.Fields = codeFields(c, `,"fields":`, m.Redacted.Fields)
	}
}

// readOpen reads the values of an open part, but for arguments and response, which it returns
// as they are.
func (p *payload) readOpen(open []byte) (args, response []byte, err error) {
	c := coder{reading: true}
	ok := eachOpen(open, func(f openField) {
		if f.erased() != nil {
			at, _ := f.erasedAt() // of another one there is no more to show
			p.Erased = append(p.Erased, Erased{f.name, at})
			return
		}
		switch v := f.value(); f.name {
		case FieldArguments:
			args = v
		case FieldResponse:
			response = v
		case FieldError:
			p.ErrorMessage = c.string(v)
		case FieldReason:
			p.intent().Reason = c.string(v)
		case FieldDeclared:
			p.intent().Declared = asJSON(v)
		case FieldQuery:
			if p.Metadata.Search == nil {
				p.Metadata.Search = &Search{}
			}
			p.Metadata.Search.Query = c.string(v)
		case FieldWarnings:
			p.Metadata.Warnings = c.strings(v)
		}
	})
	c.check(ok)
	return args, response, c.err
}

func (p *payload) intent() *Intent {
	if p.Metadata.Intent == nil {
		p.Metadata.Intent = &Intent{}
	}
	return p.Metadata.Intent
}

// read reads the members of a well-formed payload without its raw parts.
func (p *payload) read(head []byte) error {
	c := coder{reading: true}
	err := wirejson.EachMember(head, func(name, value []byte) error {
		c.name, c.value = name, value
		c.text(`,"id":`, &p.ID)
		c.number(`,"seq":`, &p.seq)
		c.moment(`,"timestamp":`, &p.Timestamp)
		if c.takes(`,"kind":`) {
			p.kind = Kind(max(0, slices.Index(kinds[:], string(value))))
		}
		p.members(&c)
		return c.err
	})
	if err == nil && (p.kind == 0 || p.seq < 1 || len(p.ID) != ulidLen) {
		err = errPayload
	}
	return err
}

// redacts is what the payload erases, but for the time.
func (p *payload) redacts() *Redaction {
	said := p.Metadata.Redacted
	if p.kind != KindWhole || said == nil {
		return nil
	}
	return &Redaction{ID: said.ID, Fields: said.Fields}
}

// codeFields writes or reads fields, which are left out when there are none.
func codeFields(c *coder, head string, v []Field) []Field {
	if c.takes(head) {
		for _, text := range c.strings(c.value) {
			v = append(v, Field(text))
		}
	} else if !c.reading && len(v) > 0 {
		c.out = appendTexts(append(c.out, head...), v)
	}
	return v
}
