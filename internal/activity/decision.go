package activity

import "time"

// Verdict is what was decided about a call.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Warned  Verdict = "warned" // allowed, with a warning
	Refused Verdict = "refused"
)

// Words are all verdicts.
func (Verdict) Words() []string { return []string{string(Allowed), string(Warned), string(Refused)} }

// Decision is the facts that decided about a call, as they were then. Of a call that
// was refused before it was known which tool is meant, there is nothing of the tool.
type Decision struct {
	Outcome Verdict `json:"outcome"`
	Check   string  `json:"check,omitempty" words:"check" doc:"The check that refused; those before it were passed."`
	ToolFacts
	Status         string `json:"status,omitempty" words:"status" doc:"Why the tool could not be called; absent when it could."`
	ConfigRevision string `json:"config_revision,omitempty" doc:"Stands for the configuration that was in force."`
}

// ToolFacts are the facts of a decision about a tool that are the same for all its
// calls: see Prepared.
type ToolFacts struct {
	Hints       *JudgedHints `json:"hints,omitempty" doc:"The hints that counted."`
	CallWith    string       `json:"call_with,omitempty" words:"variant"`
	Fingerprint string       `json:"fingerprint,omitempty" doc:"Of the definition that was judged, in hexadecimal digits."`
	ApprovedBy  string       `json:"approved_by,omitempty" doc:"Who has approved this definition: a person, or the trust in its server (trust:scan, trust:auto)."`
	ApprovedAt  *time.Time   `json:"approved_at,omitempty"`

	encoded []byte // the members, as they stand in an entry
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

// Prepared returns f with what an entry has of it, so that a call only copies that.
// Nothing of it may change from then on.
func (f ToolFacts) Prepared() ToolFacts {
	c := coder{}
	f.members(&c)
	f.encoded = c.out
	return f
}

func (d *Decision) members(c *coder) {
	if c.reading || d.Outcome != Allowed { // which most are
		c.text(`,"outcome":`, (*string)(&d.Outcome))
	}
	c.text(`,"check":`, &d.Check)
	c.text(`,"status":`, &d.Status)
	c.text(`,"config_revision":`, &d.ConfigRevision)
	if !c.reading && d.encoded != nil {
		c.out = append(c.out, d.encoded...)
		return
	}
	d.ToolFacts.members(c)
}

func (f *ToolFacts) members(c *coder) {
	if c.takes(hintsHead) {
		f.Hints = readHints(c.string(c.value))
	} else if !c.reading && f.Hints != nil {
		c.out = f.Hints.append(append(c.out, hintsHead...))
	}
	c.text(`,"call_with":`, &f.CallWith)
	c.text(`,"fingerprint":`, &f.Fingerprint)
	c.text(`,"approved_by":`, &f.ApprovedBy)
	var at int64 // milliseconds since 1970
	if f.ApprovedAt != nil {
		at = f.ApprovedAt.UnixMilli()
	}
	if c.number(`,"approved_at":`, &at); c.reading && at != 0 {
		t := time.UnixMilli(at).UTC()
		f.ApprovedAt = &t
	}
}

// An entry has hints as four letters, one for each in the order of JudgedHints: the
// first letter of its source, a capital when it is true; a hyphen for none.
const hintsHead = `,"hints":`

func (h *JudgedHints) all() [4]**HintFact {
	return [...]**HintFact{&h.ReadOnly, &h.Destructive, &h.Idempotent, &h.OpenWorld}
}

func (h *JudgedHints) append(dst []byte) []byte {
	dst = append(dst, '"')
	for _, fact := range h.all() {
		letter := byte('-')
		if f := *fact; f != nil && f.From != "" {
			if letter = f.From[0]; f.Value {
				letter -= 'a' - 'A'
			}
		}
		dst = append(dst, letter)
	}
	return append(dst, '"')
}

// readHints reads what append wrote; what it does not know is no hint.
func readHints(letters string) *JudgedHints {
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
