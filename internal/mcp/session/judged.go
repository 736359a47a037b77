package session

import "encoding/json"

// Permit is the proof that a call of one tool was decided about. Its zero value
// is the proof of nothing: a connection refuses every tools/call that comes
// without one for that very tool.
type Permit struct {
	tool    string
	listed  json.RawMessage
	recheck func() error
}

// NewPermit returns the proof for a call of the tool, as its server names it. listed
// is the definition that was judged, as the bytes that the server listed: the
// call is sent only where the server's own list has these very bytes. recheck
// decides once more; it is called when the call has waited since, before it is
// sent, and its error is the answer then.
//
// Only the gate may call it; a test of the structure holds that.
func NewPermit(tool string, listed json.RawMessage, recheck func() error) Permit {
	return Permit{tool: tool, listed: listed, recheck: recheck}
}

// Allows reports whether j is the proof for a call of the tool.
func (j *Permit) Allows(tool string) bool { return j.recheck != nil && j.tool == tool }

// Tool returns the name of the tool.
func (j *Permit) Tool() string { return j.tool }

// Listed returns the definition that was judged.
func (j *Permit) Listed() json.RawMessage { return j.listed }

// Recheck decides once more about a call that has waited.
func (j *Permit) Recheck() error { return j.recheck() }
