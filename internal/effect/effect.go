// Package effect guesses what a tool does that does not say so itself: whether
// it reads, writes or destroys.
//
// It guarantees that the guess is careful: "read" needs a sign that the tool
// reads and none against it, in its name, description and schema; whatever is
// named like a deletion is never "read"; what cannot be told is "write". It is
// pure and deterministic, bounded in time, and gives its reason in words. It
// is made for English; of other languages it knows the words for deleting.
//
// It does not protect from a server that lies: such a one can as well declare
// wrong hints. What follows from a guess is policy's to say.
package effect

import (
	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// Inference is what a tool seems to do, and why. The zero value says that
// nothing was inferred: for a tool that speaks for itself nothing is asked.
type Inference struct {
	Operation policy.Operation
	Reason    string
	// Unsure says that the operation is only the careful choice: there is no
	// sign, or there are signs both ways.
	Unsure bool
}

// Infer guesses what a tool does from its name, title, description and schema.
// Its hints are not looked at: whoever asks does so for tools without them.
func Infer(d tool.Definition) Inference {
	name := readName(d.ID.Tool)
	if d.Title != "" {
		name = name.with(readName(d.Title))
	}
	text := readText(d.Description)
	schema := readSchema(d.InputSchema)
	if in, ok := destructive(name, text, schema); ok {
		return in
	}
	if in, ok := reading(name, text, schema); ok {
		return in
	}
	return writing(name, text, schema)
}
