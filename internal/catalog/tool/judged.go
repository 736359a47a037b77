package tool

import (
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// Facts is what counted of a tool when a call of it was decided about: its effective
// hints, and the definition that they and its approval are of.
type Facts struct {
	Hints       *JudgedHints `json:"hints,omitempty" doc:"The hints that counted."`
	Overridden  *JudgedHints `json:"overridden,omitempty" doc:"What the server says of the hints that a person's hint_overrides say otherwise or as well; absent when it says none of them."`
	Inferred    string       `json:"inferred,omitempty" words:"operation" doc:"What the tool seems to do, where its server does not say it, whether that counted or not."`
	Unsure      bool         `json:"inferred_unsure,omitempty" doc:"That is only the careful choice."`
	CallWith    string       `json:"call_with,omitempty" words:"variant"`
	Fingerprint string       `json:"fingerprint,omitempty" doc:"Of the definition that was judged, in hexadecimal digits."`
	ApprovedBy  string       `json:"approved_by,omitempty" doc:"Who has approved this definition: a person, or the trust in its server (trust:scan, trust:auto)."`
	ApprovedAt  *time.Time   `json:"approved_at,omitempty"`

	written []byte // by Prepared
}

// JudgedHints are hints as they count. One that is absent has no meaning beside the
// others: that a tool which only reads is destructive, say.
type JudgedHints struct {
	ReadOnly    *HintFact `json:"read_only,omitempty"`
	Destructive *HintFact `json:"destructive,omitempty"`
	Idempotent  *HintFact `json:"idempotent,omitempty"`
	OpenWorld   *HintFact `json:"open_world,omitempty"`
}

// HintFact is one hint: what counts, and who says so.
type HintFact struct {
	Value bool       `json:"value"`
	From  HintSource `json:"from" doc:"The server, a person's hint_overrides, what was inferred (infer_hints: enforce), or MCP's default, as nobody says anything."`
}

// HintSource is who says a hint.
type HintSource string

// The sources of hints.
const (
	FromServer   HintSource = "server"
	FromOverride HintSource = "override"
	FromInferred HintSource = "inferred"
	FromDefault  HintSource = "default"
)

// Words are all sources.
func (HintSource) Words() []string {
	return []string{string(FromServer), string(FromOverride), string(FromInferred), string(FromDefault)}
}

// JudgeHints returns the hints that count, and who says them: override where it says
// something, else declared, else what else was made of them. What nobody says is MCP's
// default, which gives two of them no meaning in a tool that only reads.
func JudgeHints(effective, override, declared Hints) *JudgedHints {
	h := &JudgedHints{}
	by, of := override.booleans(), declared.booleans()
	for i, b := range effective.booleans() {
		byDefault := b.name == "destructiveHint" || b.name == "openWorldHint"
		fact := &HintFact{Value: *b.said == True, From: FromInferred}
		switch {
		case *b.said == Unsaid && effective.ReadOnly == True && (b.name == "destructiveHint" || b.name == "idempotentHint"):
			continue
		case *b.said == Unsaid:
			fact = &HintFact{Value: byDefault, From: FromDefault}
		case *by[i].said != Unsaid:
			fact.From = FromOverride
		case *of[i].said != Unsaid:
			fact.From = FromServer
		}
		*h.all()[i] = fact
	}
	return h
}

// Declared returns the hints that the server has given: what counted that it has said
// itself, and what was overridden.
func (j *Facts) Declared() (h Hints) {
	said := h.booleans()
	for _, from := range [...]*JudgedHints{j.Hints, j.Overridden} {
		if from == nil {
			continue
		}
		for i, fact := range from.all() {
			if f := *fact; f != nil && f.From == FromServer {
				*said[i].said = TriOf(f.Value)
			}
		}
	}
	return h
}

// Overridden returns what the server has said of the hints that are overridden; nil
// when that is nothing.
func Overridden(override, declared Hints) *JudgedHints {
	var h JudgedHints
	by, of := override.booleans(), declared.booleans()
	for i := range by {
		if *by[i].said != Unsaid && *of[i].said != Unsaid {
			*h.all()[i] = &HintFact{Value: *of[i].said == True, From: FromServer}
		}
	}
	if h == (JudgedHints{}) {
		return nil
	}
	return &h
}

// all is in the order of Hints.
func (h *JudgedHints) all() [4]**HintFact {
	return [...]**HintFact{&h.ReadOnly, &h.Destructive, &h.Idempotent, &h.OpenWorld}
}

// Prepared returns j with the bytes that AppendMembers appends. Nothing of it may
// change from then on.
func (j Facts) Prepared() Facts {
	j.written = j.AppendMembers(nil)
	return j
}

// AppendMembers appends j to dst as records are stored, far shorter than as JSON: as
// members of an object, each with a comma before it.
func (j *Facts) AppendMembers(dst []byte) []byte {
	if j.written != nil {
		return append(dst, j.written...)
	}
	if j.Hints != nil {
		dst = append(j.Hints.appendLetters(append(dst, `,"hints":"`...)), '"')
	}
	if j.Overridden != nil {
		dst = append(j.Overridden.appendLetters(append(dst, `,"overridden":"`...)), '"')
	}
	if j.Unsure {
		dst = append(dst, `,"inferred_unsure":true`...)
	}
	for _, m := range j.texts() {
		if *m.text != "" {
			dst = wirejson.AppendString(append(append(append(dst, `,"`...), m.name...), `":`...), *m.text)
		}
	}
	if j.ApprovedAt != nil {
		dst = strconv.AppendInt(append(dst, `,"approved_at":`...), j.ApprovedAt.UnixMilli(), 10)
	}
	return dst
}

// Read takes a member that AppendMembers has written; others it ignores.
func (j *Facts) Read(name, value []byte) {
	text, _ := wirejson.String(value)
	switch string(name) {
	case "hints":
		j.Hints = readLetters(text)
	case "overridden":
		j.Overridden = readLetters(text)
	case "inferred_unsure":
		j.Unsure = string(value) == "true"
	case "approved_at":
		if ms, ok := wirejson.Int(value); ok {
			at := time.UnixMilli(ms).UTC()
			j.ApprovedAt = &at
		}
	}
	for _, m := range j.texts() {
		if m.name == string(name) {
			*m.text = text
		}
	}
}

type textMember struct {
	name string
	text *string
}

func (j *Facts) texts() [4]textMember {
	return [...]textMember{{"call_with", &j.CallWith}, {"inferred", &j.Inferred}, {"fingerprint", &j.Fingerprint}, {"approved_by", &j.ApprovedBy}}
}

// appendLetters appends a letter for each hint: the first one of its source, a capital
// when it is true; a hyphen for none.
func (h *JudgedHints) appendLetters(dst []byte) []byte {
	for _, fact := range h.all() {
		letter := byte('-')
		if f := *fact; f != nil {
			if letter = f.From[0]; f.Value {
				letter -= 'a' - 'A'
			}
		}
		dst = append(dst, letter)
	}
	return dst
}

// readLetters reads what appendLetters wrote; what it does not know is no hint.
func readLetters(letters string) *JudgedHints {
	h := &JudgedHints{}
	for i, fact := range h.all() {
		for _, source := range HintSource("").Words() {
			if i < len(letters) && letters[i]|('a'-'A') == source[0] {
				*fact = &HintFact{Value: letters[i] < 'a', From: HintSource(source)}
			}
		}
	}
	return h
}
