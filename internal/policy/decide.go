package policy

import (
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// Verdict is the outcome. The zero value rejects.
type Verdict uint8

// The verdicts.
const (
	Reject Verdict = iota
	Allow
	AllowWithWarning
)

// Existence says what the catalog knows of the name. The zero value is "no
// such server".
type Existence uint8

// The states of Existence.
const (
	NoServer Existence = iota
	NoTool
	Exists
)

// Request is the call as its caller made it.
type Request struct {
	Variant Variant
	// Name is the name as given; ID is what it was parsed into.
	Name string
	ID   tool.ID
	// NameErr and ArgsErr are what parsing them gave, nil when they are sound.
	NameErr  error
	ArgsErr  *problem.Problem
	Declared Declared
}

// Facts is what the catalog says at call time.
type Facts struct {
	InScope   bool
	Existence Existence
	// Nearest are the names to suggest when there is no such server or tool.
	Nearest []string
	Status  Status
	// Hints are the effective hints.
	Hints tool.Hints
}

// Rules is the part of the configuration that decisions follow.
type Rules struct {
	StrictServerValidation bool
	RequireIntent          bool
}

// Decision is the answer. Problem is set if and only if the verdict is Reject.
// Warnings are complete sentences, kept in the record and put into the result.
type Decision struct {
	Verdict  Verdict
	Problem  *problem.Problem
	Intent   Intent
	Warnings []string
}
