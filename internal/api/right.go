package api

import "mcpproxy/internal/config/auth"

// Right is the permission that an operation requires. The zero value is invalid: New rejects an operation without a
// right.
type Right uint8

// The rights that operations require.
const (
	noRight Right = iota
	Look          // read servers, tools, the log and the status
	Call          // call a tool, within the policy
	Operate       // restart and log in
	Decide        // approve, block, enable, add, remove
	Invite        // create a sign-in code for the web UI; not from a page
	Open          // no right, because a sign-in request contains its own proof
)

// String returns the name of the right in the OpenAPI document.
func (r Right) String() string {
	return [...]string{"none", "look", "call", "operate", "decide", "invite", "open"}[r]
}

// requirementText returns a sentence for the OpenAPI document.
func (r Right) requirementText() string {
	if r == Open {
		return "Requires no permission: the code or key in the request identifies the user."
	}
	return "Requires the right to " + r.String() + "."
}

// hasRight reports whether the actor has the right.
func hasRight(a auth.Actor, r Right) bool {
	switch r {
	case noRight:
		return false
	case Open:
		return a.Kind != auth.Nobody
	case Call:
		return a.Kind == auth.Admin || a.Kind == auth.Agent && a.Name != "" // with a token, within its scope
	case Invite:
		return a.Kind == auth.Admin && !a.FromWebUI
	}
	return a.Kind == auth.Admin
}
