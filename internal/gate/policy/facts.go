package policy

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// Existence says what the catalog knows of the name. The zero value is "no
// such server".
type Existence uint8

// The states of Existence.
const (
	NoServer Existence = iota
	NoTool
	Exists
	// Unlisted is a server that has never told its tools: it is still
	// connecting for the first time, or cannot be reached.
	Unlisted
)

// Request is the call as its caller made it.
type Request struct {
	Variant Variant
	// OwnNames says that the caller has the list of a server's tools, and
	// not retrieve_tools.
	OwnNames bool
	// Name is the name as given; ID is what it was parsed into.
	Name string
	ID   tool.ID
	// NameErr, SelectErr and ArgsErr are what parsing them gave, nil when they are sound.
	NameErr   error
	SelectErr *problem.Problem
	ArgsErr   *problem.Problem
	Declared  Declared
}

// Facts is what the catalog says at call time.
type Facts struct {
	// InScope says that the caller may reach a tool of that name, whether there is
	// one or not, as far as its lane allows: Lanes are those that the caller has.
	InScope bool
	Lanes   auth.Lanes
	// Lane is what the tool counts as in a scope: the worst of what it is called with
	// and what it seems to do, whatever is made of that. NoOperation when it is not
	// known.
	Lane      Operation
	Existence Existence
	// Nearest are the names to suggest when there is no such server or tool.
	Nearest []string
	// Unlisted is why a server has not told its tools yet.
	Unlisted string
	// LoginNeeded says that it has not because nobody has logged in to it.
	LoginNeeded bool
	Status      Status
	// Hints are the effective hints, ServerHints those that the server has given.
	Hints, ServerHints tool.Hints
	// Inferred is what a tool seems to do that does not say so itself, and
	// InferredWhy the reason; NoOperation when it does, or when there is no sign
	// of it.
	Inferred    Operation
	InferredWhy string
	// InferredUnsure says that this is only the careful choice. It counts where
	// what is inferred is enforced, and is nothing to warn of.
	InferredUnsure bool
	// Arguments is what those of the call do, and ByArguments says that Lane is what
	// they make of it.
	Arguments   Arguments
	ByArguments bool
}
