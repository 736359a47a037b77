package api

import "mcpproxy/internal/auth"

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
)

// String is the name in the document.
func (r Right) String() string { return [...]string{"none", "look", "call", "operate", "decide"}[r] }

// grants reports whether the actor has the right.
func grants(a auth.Actor, r Right) bool {
	return a.Kind == auth.Admin && r != noRight
}
