package activity

import "mcpproxy/internal/tool"

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

// Decision is the facts that decided about a call, as they were then. Where it was not
// known which tool is meant, there is nothing of the tool.
type Decision struct {
	Outcome Verdict `json:"outcome"`
	Check   string  `json:"check,omitempty" words:"check" doc:"The check that refused; those before it were passed."`
	tool.Judged
	Status         string `json:"status,omitempty" words:"status" doc:"Why the tool could not be called; absent when it could."`
	Profile        string `json:"profile,omitempty" doc:"The profiles that the caller was bound to, or used."`
	ConfigRevision string `json:"config_revision,omitempty" doc:"Stands for the configuration that was in force."`
}

func (d *Decision) members(c *coder) {
	if c.reading || d.Outcome != Allowed { // which most are
		c.text(`,"outcome":`, (*string)(&d.Outcome))
	}
	c.text(`,"check":`, &d.Check)
	c.text(`,"status":`, &d.Status)
	c.text(`,"profile":`, &d.Profile)
	c.text(`,"config_revision":`, &d.ConfigRevision)
	if c.reading {
		d.Judged.Read(c.name, c.value)
	} else {
		c.out = d.Judged.AppendMembers(c.out)
	}
}
