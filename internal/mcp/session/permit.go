package session

import "encoding/json"

// ToolCallPermit proves that a call of one tool was allowed. The zero value allows nothing: a connection rejects every
// tools/call without a permit for that tool.
type ToolCallPermit struct {
	tool    string
	listed  json.RawMessage
	recheck func() error
}

// NewToolCallPermit returns the permit for a call of the tool, by its name at the server. listed is the checked
// definition, in the bytes that the server listed. The call is sent only if the server's current list has the same
// bytes. If the call has waited before it is sent, recheck decides again, and its error becomes the answer.
//
// Only the gate may call it; archtest checks that.
func NewToolCallPermit(tool string, listed json.RawMessage, recheck func() error) ToolCallPermit {
	return ToolCallPermit{tool: tool, listed: listed, recheck: recheck}
}

// Allows reports whether p permits a call of the tool.
func (j *ToolCallPermit) Allows(tool string) bool { return j.recheck != nil && j.tool == tool }

// ToolName returns the name of the tool.
func (j *ToolCallPermit) ToolName() string { return j.tool }

// ListedDefinition returns the definition that was checked.
func (j *ToolCallPermit) ListedDefinition() json.RawMessage { return j.listed }

// Recheck decides again about a call that has waited.
func (j *ToolCallPermit) Recheck() error { return j.recheck() }
