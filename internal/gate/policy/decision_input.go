package policy

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// ToolExistence says whether the catalog knows the name. The zero value is "no such server".
type ToolExistence uint8

// The states of Existence.
const (
	NoServer ToolExistence = iota
	NoTool
	Exists
	// Unlisted is a server that has never listed its tools: it is still connecting, or cannot be reached.
	Unlisted
)

// CallRequest is the call as the caller made it.
type CallRequest struct {
	CallTool CallToolVariant
	// OwnNames says that the caller sees the tool list of a server instead of retrieve_tools.
	OwnNames bool
	// LaneAddress is set if the call came by the address of a lane, which is the call tool: /mcp/all or
	// /mcp/p/PROFILE/all, to which the name of a lane is added.
	LaneAddress string
	// Name is the name as given; ID is its parsed form.
	Name string
	ID   tool.ID
	// NameErr, SelectErr and ArgsErr are the parse errors, or nil.
	NameErr   error
	SelectErr *problem.Problem
	ArgsErr   *problem.Problem
	Declared  DeclaredIntent
}

// ChoosesLane reports whether the caller has chosen the lane of the call: by a call tool, or by the address of a
// lane. Otherwise it is that of the tool's hints.
func (r *CallRequest) ChoosesLane() bool { return !r.OwnNames || r.LaneAddress != "" }

// Facts is what the catalog knows at the time of the call.
type Facts struct {
	// InScope says that the caller's scope includes the name, whether the tool exists or not. Lanes are
	// the caller's lanes.
	InScope bool
	Lanes   auth.OperationLaneSet
	// Lane is the lane of the tool for scopes: the worse of its hints and its inferred hints. NoOperation
	// if unknown.
	Lane      Operation
	Existence ToolExistence
	// Nearest are suggestions for an unknown server or tool.
	Nearest []string
	// Unlisted is why a server has not listed its tools yet.
	Unlisted string
	// LoginNeeded says that the reason is a missing login.
	LoginNeeded bool
	Status      ToolStatus
	// Hints are the effective hints, ServerHints those of the server.
	Hints, ServerHints tool.Hints
	// Inferred is the inferred operation of a tool without hints, and InferredWhy the reason; NoOperation
	// if the tool has hints or nothing was inferred.
	Inferred    Operation
	InferredWhy string
	// InferredUnsure says that Inferred is only the cautious default. It counts in mode enforce and causes
	// no warning.
	InferredUnsure bool
	// Arguments is the effect of the call's arguments; ByArguments says that Lane is derived from it.
	Arguments   ArgumentEffect
	ByArguments bool
}
