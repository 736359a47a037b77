package api

import "mcpproxy/internal/config/auth"

// Right is what a route lets its caller do. The zero value is none: a surface
// with a route that names no right is not made.
type Right uint8

// The rights.
const (
	noRight Right = iota
	Look          // see servers, tools, the log and the status
	Call          // call a tool, within the policy
	Operate       // change what runs
	Decide        // say what may run: approve, block, switch, add, remove
	Invite        // let a page of the web UI in; no page can
	Open          // nothing: who signs in proves who they are by the request itself
)

// String is the name in the document.
func (r Right) String() string {
	return [...]string{"none", "look", "call", "operate", "decide", "invite", "open"}[r]
}

// needs is what the document says of a route with the right.
func (r Right) needs() string {
	if r == Open {
		return "Needs no right: what is sent proves who signs in."
	}
	return "Needs the right to " + r.String() + "."
}

// grants reports whether the actor has the right.
func grants(a auth.Actor, r Right) bool {
	switch r {
	case noRight:
		return false
	case Open:
		return a.Kind != auth.Nobody
	case Call:
		return a.Kind == auth.Admin || a.Kind == auth.Agent && a.Name != "" // by a token, within its scope
	case Invite:
		return a.Kind == auth.Admin && !a.FromWebUI
	}
	return a.Kind == auth.Admin
}
