package policy

import (
	"cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// ToolExistence reports whether the catalog contains the tool. The zero value means "no such server".
type ToolExistence uint8

// The states of Existence.
const (
	NoServer ToolExistence = iota
	NoTool
	Exists
	// Unlisted means that the server has never listed its tools, because it is still connecting or cannot be reached.
	Unlisted
)

// CallRequest is the call as the caller made it.
type CallRequest struct {
	CallTool CallToolVariant
	// OwnNames reports whether the caller sees the tool list of a server instead of retrieve_tools.
	OwnNames bool
	// LaneAddress is set if the call came through the endpoint of a lane, which then acts as the call tool. It is
	// /mcp/all or /mcp/p/PROFILE/all; the name of a lane is appended to it.
	LaneAddress string
	// Name is the name as given; ID is its parsed form.
	Name string
	ID   tool.ID
	// Alias is server:alias if the caller used the user's name for the tool instead of ID.
	Alias string
	// NameErr, SelectErr and ArgsErr are the parse errors, or nil.
	NameErr   error
	SelectErr *problem.Problem
	ArgsErr   *problem.Problem
	Declared  DeclaredIntent
}

// ChoosesLane reports whether the caller has chosen the lane of the call: by a call tool, or by the endpoint of a
// lane. Otherwise the tool's hints determine the lane.
func (r *CallRequest) ChoosesLane() bool { return !r.OwnNames || r.LaneAddress != "" }

// toolText returns the quoted name of the tool, as the caller knows it.
func (r *CallRequest) toolText() string { return quoteClipped(cmp.Or(r.Alias, r.ID.String())) }

// Facts contains the facts about the tool and the caller at the time of the call.
type Facts struct {
	// InScope reports whether the caller's scope includes the name, whether or not the tool exists. Lanes are the
	// caller's lanes.
	InScope bool
	Lanes   auth.OperationLaneSet
	// Lane is the lane of the tool for scopes: the more dangerous lane of its hints and its inferred hints;
	// NoOperation if unknown.
	Lane      Operation
	Existence ToolExistence
	// Suggestions are similar names for an unknown server or tool.
	Suggestions []string
	// Unlisted is the reason why a server has not listed its tools yet.
	Unlisted string
	// LoginNeeded reports whether the reason is a missing login.
	LoginNeeded bool
	Status      ToolStatus
	// Blocked reports that the tool waits because a user has blocked its definition.
	Blocked bool
	// Hints are the effective hints, ServerHints the hints that the server declares.
	Hints, ServerHints tool.Hints
	// Inferred is the inferred operation of a tool without hints, and InferenceReason the reason; NoOperation
	// if the tool has hints or nothing was inferred.
	Inferred        Operation
	InferenceReason string
	// InferredUnsure reports whether Inferred is only the cautious default. It applies in mode enforce and causes no
	// warning.
	InferredUnsure bool
	// Arguments is the effect of the call's arguments; ByArguments reports whether Lane is derived from it.
	Arguments   ArgumentEffect
	ByArguments bool
}
