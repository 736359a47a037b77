package activity

import (
	"strings"

	"mcpproxy/internal/catalog/tool"
)

// Verdict is what was decided about a call.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Warned  Verdict = "warned" // allowed, with a warning
	Refused Verdict = "refused"
	Asked   Verdict = "asked" // allowed, when a person has approved it
)

// Words are all verdicts.
func (Verdict) Words() []string {
	return []string{string(Allowed), string(Warned), string(Refused), string(Asked)}
}

// Manner is how a tool was called.
type Manner string

// The manners.
const (
	InLane Manner = "lane" // by a calling tool, over REST or the command line
	ByName Manner = "name" // as a tool of its own, at the address of all servers or of one
)

// Words are all manners.
func (Manner) Words() []string { return []string{string(InLane), string(ByName)} }

// Fit is how arguments stand to the schema of their tool.
type Fit string

// The fits.
const (
	Fits  Fit = "fit"
	Unfit Fit = "unfit"
)

// Words are all fits.
func (Fit) Words() []string { return []string{string(Fits), string(Unfit)} }

// ArgumentLane is what a call does by its arguments, and what decided that.
type ArgumentLane struct {
	Operation string `json:"operation" words:"operation" doc:"What the call does by its arguments."`
	Word      string `json:"word,omitempty" doc:"The word in them that decided, or why they could not be read."`
	By        string `json:"by" words:"lane_by" doc:"How the argument was read."`
	Argument  string `json:"argument" doc:"The path of the argument."`
	Declared  bool   `json:"declared,omitempty" doc:"A person has said so, with lanes; else the schema shows it, and what is judged only makes the call count as more."`
	Unread    bool   `json:"unread,omitempty" doc:"The argument could not be read to its end."`
}

// Decision is the facts that decided about a call, as they were then. Where it was not
// known which tool is meant, there is nothing of the tool.
type Decision struct {
	Outcome  Verdict `json:"outcome"`
	Check    string  `json:"check,omitempty" words:"check" doc:"The check that refused; those before it were passed."`
	Called   Manner  `json:"called,omitempty" doc:"How the tool was called: by a calling tool, whose lane is the caller's choice; or by its own name, in the lane that its hints call for, with nothing declared and the arguments left to its server."`
	Declared bool    `json:"declared,omitempty" doc:"An operation type was declared, and not only the variant chosen."`
	tool.DecisionFacts
	Status         string        `json:"status,omitempty" words:"status" doc:"Why the tool could not be called; absent when it could."`
	Further        []string      `json:"further_statuses,omitempty" doc:"Further reasons why it could not, in their order."`
	Arguments      Fit           `json:"arguments,omitempty" doc:"How the arguments stood to the tool's schema; absent when they were not checked."`
	Lane           *ArgumentLane `json:"lane,omitempty" doc:"What the call does by its arguments; absent where they are not judged."`
	Approval       string        `json:"approval,omitempty" doc:"What let a call go on that a person is asked about: the id of the question that was approved, or of the lease."`
	Profile        string        `json:"profile,omitempty" doc:"The profiles that the caller was bound to, or used."`
	ConfigRevision string        `json:"config_revision,omitempty" doc:"Stands for the configuration that was in force."`
}

func (d *Decision) members(c *coder) {
	if c.reading || d.Outcome != Allowed { // which most are
		c.text(`,"outcome":`, (*string)(&d.Outcome))
	}
	c.text(`,"check":`, &d.Check)
	d.how(c)
	c.text(`,"status":`, &d.Status)
	c.texts(`,"further_statuses":`, &d.Further)
	d.lane(c)
	c.text(`,"approval":`, &d.Approval)
	c.text(`,"profile":`, &d.Profile)
	c.text(`,"config_revision":`, &d.ConfigRevision)
	if c.reading {
		d.DecisionFacts.ReadRecordMember(c.name, c.value)
	} else {
		c.out = d.DecisionFacts.AppendRecordMembers(c.out)
	}
}

// lane is a list of texts: operation, word, by, argument, and a letter each for declared
// and unread.
func (d *Decision) lane(c *coder) {
	var parts []string
	if l := d.Lane; l != nil && !c.reading {
		flags := ""
		if l.Declared {
			flags += "d"
		}
		if l.Unread {
			flags += "u"
		}
		parts = []string{l.Operation, l.Word, l.By, l.Argument, flags}
	}
	c.texts(`,"lane":`, &parts)
	if c.reading && len(parts) == 5 {
		d.Lane = &ArgumentLane{parts[0], parts[1], parts[2], parts[3], strings.Contains(parts[4], "d"), strings.Contains(parts[4], "u")}
	}
}

// how is three letters, since every call has them: the first one of the manner, d when
// an operation was declared, and the first one of the fit; a hyphen for none.
func (d *Decision) how(c *coder) {
	switch {
	case c.takes(`,"how":`):
		for i, letter := range []byte(c.string(c.value)) {
			switch {
			case i == 0:
				d.Called = letterOf(letter, InLane, ByName)
			case i == 1:
				d.Declared = letter == 'd'
			case i == 2:
				d.Arguments = letterOf(letter, Fits, Unfit)
			}
		}
	case !c.reading && d.Called != "":
		letters := [...]byte{d.Called[0], '-', '-'}
		if d.Declared {
			letters[1] = 'd'
		}
		if d.Arguments != "" {
			letters[2] = d.Arguments[0]
		}
		c.out = append(append(append(c.out, `,"how":"`...), letters[:]...), '"')
	}
}

// letterOf returns the word that begins with a letter; "" for none.
func letterOf[T ~string](letter byte, words ...T) (none T) {
	for _, word := range words {
		if word[0] == letter {
			return word
		}
	}
	return none
}
