package tool

import (
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// DecisionFacts are the facts about the tool that a decision about a call used: its effective hints, and the definition with
// its approval. It is part of the activity record.
type DecisionFacts struct {
	Hints       *JudgedHints `json:"hints,omitempty" doc:"The effective hints."`
	Overridden  *JudgedHints `json:"overridden,omitempty" doc:"The server's values of the hints in hint_overrides. Absent if it declares none of them."`
	Inferred    string       `json:"inferred,omitempty" words:"operation" doc:"The inferred operation type of a tool without hints, whether or not it was used for the decision."`
	Unsure      bool         `json:"inferred_unsure,omitempty" doc:"Whether inferred is only the cautious default, because the definition gives no clear evidence."`
	CallWith    string       `json:"call_with,omitempty" words:"variant"`
	Fingerprint string       `json:"fingerprint,omitempty" doc:"The fingerprint of the evaluated definition, in hexadecimal."`
	ApprovedBy  string       `json:"approved_by,omitempty" doc:"The approver of this definition: a user, or trust:scan or trust:auto if the server's trust setting accepted it automatically."`
	ApprovedAt  *time.Time   `json:"approved_at,omitempty"`

	encoded []byte // set by WithEncodedBytes
}

// JudgedHints contains the effective hints. A hint is absent if the others make it irrelevant, such as "destructive"
// for a read-only tool.
type JudgedHints struct {
	ReadOnly    *HintFact `json:"read_only,omitempty"`
	Destructive *HintFact `json:"destructive,omitempty"`
	Idempotent  *HintFact `json:"idempotent,omitempty"`
	OpenWorld   *HintFact `json:"open_world,omitempty"`
}

// HintFact is the effective value of one hint and its source.
type HintFact struct {
	Value bool       `json:"value"`
	From  HintSource `json:"from" doc:"The source of the value: server, override (hint_overrides), sandbox (trust_sandbox), inferred (infer_hints: enforce), or default (of MCP)."`
}

// HintSource is the source of a hint.
type HintSource string

// The sources of hints.
const (
	FromServer   HintSource = "server"
	FromOverride HintSource = "override"
	FromSandbox  HintSource = "sandbox"
	FromInferred HintSource = "inferred"
	FromDefault  HintSource = "default"
)

// Words returns all sources.
func (HintSource) Words() []string {
	return []string{string(FromServer), string(FromOverride), string(FromSandbox), string(FromInferred), string(FromDefault)}
}

// ResolveHints returns the effective hints and their sources. A hint comes from the override if it sets the hint, else
// from the server's declaration, else from the sandbox, else from inference. Unset hints have MCP's default, which
// makes two of them irrelevant for a read-only tool.
func ResolveHints(effective, override, declared, proven Hints) *JudgedHints {
	h := &JudgedHints{}
	by, of, shown := override.boolHints(), declared.boolHints(), proven.boolHints()
	for i, b := range effective.boolHints() {
		byDefault := b.name == "destructiveHint" || b.name == "openWorldHint"
		fact := &HintFact{Value: *b.value == True, From: FromInferred}
		switch {
		case *b.value == Unset && effective.ReadOnly == True && (b.name == "destructiveHint" || b.name == "idempotentHint"):
			continue
		case *b.value == Unset:
			fact = &HintFact{Value: byDefault, From: FromDefault}
		case *by[i].value != Unset:
			fact.From = FromOverride
		case *of[i].value != Unset:
			fact.From = FromServer
		case *shown[i].value != Unset:
			fact.From = FromSandbox
		}
		*h.hintFields()[i] = fact
	}
	return h
}

// DeclaredHints returns the hints that the server declared, including overridden ones.
func (j *DecisionFacts) DeclaredHints() (h Hints) {
	said := h.boolHints()
	for _, from := range [...]*JudgedHints{j.Hints, j.Overridden} {
		if from == nil {
			continue
		}
		for i, fact := range from.hintFields() {
			if f := *fact; f != nil && f.From == FromServer {
				*said[i].value = ToTriBool(f.Value)
			}
		}
	}
	return h
}

// OverriddenHints returns the declared hints that an override replaces. It returns nil if there are none.
func OverriddenHints(override, declared Hints) *JudgedHints {
	var h JudgedHints
	by, of := override.boolHints(), declared.boolHints()
	for i := range by {
		if *by[i].value != Unset && *of[i].value != Unset {
			*h.hintFields()[i] = &HintFact{Value: *of[i].value == True, From: FromServer}
		}
	}
	if h == (JudgedHints{}) {
		return nil
	}
	return &h
}

// hintFields returns the fields in the order of Hints.
func (h *JudgedHints) hintFields() [4]**HintFact {
	return [...]**HintFact{&h.ReadOnly, &h.Destructive, &h.Idempotent, &h.OpenWorld}
}

// WithEncodedBytes returns j together with the bytes that AppendRecordMembers appends. The result must not be changed.
func (j DecisionFacts) WithEncodedBytes() DecisionFacts {
	j.encoded = j.AppendRecordMembers(nil)
	return j
}

// AppendRecordMembers appends j to dst in the form of activity records, which is much shorter than its JSON: as members
// of an object, each preceded by a comma.
func (j *DecisionFacts) AppendRecordMembers(dst []byte) []byte {
	if j.encoded != nil {
		return append(dst, j.encoded...)
	}
	if j.Hints != nil {
		dst = append(j.Hints.appendCompactHints(append(dst, `,"hints":"`...)), '"')
	}
	if j.Overridden != nil {
		dst = append(j.Overridden.appendCompactHints(append(dst, `,"overridden":"`...)), '"')
	}
	if j.Unsure {
		dst = append(dst, `,"inferred_unsure":true`...)
	}
	for _, m := range j.textMembers() {
		if *m.text != "" {
			dst = wirejson.AppendString(append(append(append(dst, `,"`...), m.name...), `":`...), *m.text)
		}
	}
	if j.ApprovedAt != nil {
		dst = strconv.AppendInt(append(dst, `,"approved_at":`...), j.ApprovedAt.UnixMilli(), 10)
	}
	return dst
}

// ReadRecordMember reads a member that AppendRecordMembers wrote. It ignores other members.
func (j *DecisionFacts) ReadRecordMember(name, value []byte) {
	text, _ := wirejson.String(value)
	switch string(name) {
	case "hints":
		j.Hints = parseCompactHints(text)
	case "overridden":
		j.Overridden = parseCompactHints(text)
	case "inferred_unsure":
		j.Unsure = string(value) == "true"
	case "approved_at":
		if ms, ok := wirejson.Int(value); ok {
			at := time.UnixMilli(ms).UTC()
			j.ApprovedAt = &at
		}
	}
	for _, m := range j.textMembers() {
		if m.name == string(name) {
			*m.text = text
		}
	}
}

type textMember struct {
	name string
	text *string
}

func (j *DecisionFacts) textMembers() [4]textMember {
	return [...]textMember{{"call_with", &j.CallWith}, {"inferred", &j.Inferred}, {"fingerprint", &j.Fingerprint}, {"approved_by", &j.ApprovedBy}}
}

// letter returns the letter of a source in activity records: the first one, but p (proven) for the sandbox.
func (s HintSource) letter() byte {
	if s == FromSandbox {
		return 'p'
	}
	return s[0]
}

// appendCompactHints appends one character for each hint: the letter of its source, in upper case if the hint is true,
// or a hyphen if the hint is absent.
func (h *JudgedHints) appendCompactHints(dst []byte) []byte {
	for _, fact := range h.hintFields() {
		letter := byte('-')
		if f := *fact; f != nil {
			if letter = f.From.letter(); f.Value {
				letter -= 'a' - 'A'
			}
		}
		dst = append(dst, letter)
	}
	return dst
}

// parseCompactHints reads the output of appendCompactHints. An unknown letter is an absent hint.
func parseCompactHints(letters string) *JudgedHints {
	h := &JudgedHints{}
	for i, fact := range h.hintFields() {
		for _, source := range HintSource("").Words() {
			if i < len(letters) && letters[i]|('a'-'A') == HintSource(source).letter() {
				*fact = &HintFact{Value: letters[i] < 'a', From: HintSource(source)}
			}
		}
	}
	return h
}
