package session

import "encoding/json"

// Permit is the proof that a call of one tool was allowed. The zero value proves nothing: a connection
// refuses every tools/call without a permit for that tool.
type Permit struct {
	tool    string
	listed  json.RawMessage
	recheck func() error
}

// NewPermit returns the permit for a call of the tool, by its name at the server. listed is the definition
// that was checked, as the bytes that the server listed: the call is sent only if the server's current
// list has the same bytes. recheck decides again if the call has waited before it is sent; its error
// becomes the answer.
//
// Only the gate may call it; archtest checks that.
func NewPermit(tool string, listed json.RawMessage, recheck func() error) Permit {
	return Permit{tool: tool, listed: listed, recheck: recheck}
}

// Allows reports whether p permits a call of the tool.
func (j *Permit) Allows(tool string) bool { return j.recheck != nil && j.tool == tool }

// ToolName returns the name of the tool.
func (j *Permit) ToolName() string { return j.tool }

// ListedDefinition returns the definition that was checked.
func (j *Permit) ListedDefinition() json.RawMessage { return j.listed }

// Recheck decides again about a call that has waited.
func (j *Permit) Recheck() error { return j.recheck() }
