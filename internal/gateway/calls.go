package gateway

import (
	"context"

	"mcpproxy/internal/door"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// What comes in at the door, and what comes of it.
type (
	CallRequest = door.CallRequest
	CallResult  = door.CallResult
	Refusal     = door.Refusal
	Session     = session.Session
)

// ErrStopping is the cause with which the daemon ends calls that take longer
// than a stop waits for.
var ErrStopping = door.ErrStopping

// Call calls a tool: see door.Door.
func (g *Gateway) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	return g.door.Call(ctx, r)
}

// Refuse records a refusal of a surface: see door.Door.
func (g *Gateway) Refuse(ctx context.Context, r Refusal) string { return g.door.Refuse(ctx, r) }

// Surface returns what clients can talk to of one server, with the door before
// it.
func (g *Gateway) Surface(server string) session.Surface {
	return g.door.Wrap(server, g.Upstreams.Surface(server))
}

// Refused puts a client's tools/call on record that a surface has refused before
// it got to the door. server is whose tool it is, "" where nobody knows.
func (g *Gateway) Refused(ctx context.Context, server string, r *session.Request, p *problem.Problem) {
	name, _ := rawjson.String(rawjson.Find(r.Params, "name"))
	g.Refuse(ctx, Refusal{Caller: *r.Caller, Server: server, Tool: name, Arguments: rawjson.Find(r.Params, "arguments"),
		RequestBytes: r.Size, Problem: p})
}
