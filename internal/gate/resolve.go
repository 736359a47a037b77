package gate

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// subject is what is decided about: the tool and the arguments of a call, and the configuration.
type subject struct {
	cfg     *config.Config
	tool    *catalog.Tool // nil: there is none
	request policy.Request
	args    arguments
}

// arguments are the arguments of a call. Where they name results of earlier calls, insertResults
// returns the arguments that are sent.
type arguments struct {
	sent        json.RawMessage
	refs        []resultRef     // results that are still to be inserted
	recorded    json.RawMessage // as the record has them; nil: as they are sent
	shown       func() []byte   // as a reviewer sees them; nil: as they are sent
	sensitivity string          // of the inserted results
	unknown     bool            // a dry run was not told the arguments
}

// resolve returns the call by a calling tool that a request asks for, what it is about, and the
// snapshot to decide on.
func (g *Gate) resolve(r *Request) (call, subject, *catalog.Snapshot) {
	c := call{options: options{Declares: true, Validates: true, Cuts: true},
		caller: r.Caller, stateless: r.Caller.SessionID == "", limit: r.Timeout, unknown: r.Unknown, client: r.Client, say: r.Say, meta: r.Meta, size: r.RequestBytes}
	s := subject{cfg: g.Config(), request: policy.Request{Variant: r.Variant, Declared: r.Declared}}
	now := g.Catalog.Current()
	if s.name(now, r.Name); s.tool == nil {
		s.name(now, trimmed(r.Name))
	}
	c.selection, s.request.SelectErr = policy.ReadSelection(r.Select)
	s.args.sent, s.request.ArgsErr = given(r.Args, r.ArgsJSON)
	if r.Hands && s.request.ArgsErr == nil {
		if s.args.refs = resultRefsIn(s.args.sent); s.args.refs != nil {
			s.args.recorded = replaced(s.args.sent, s.args.refs, (*resultRef).shown)
		}
	}
	return c, s, now
}

// name finds the tool of a name, server:tool.
func (s *subject) name(now *catalog.Snapshot, name string) {
	s.request.Name = name
	s.request.ID, s.request.NameErr = tool.ParseID(name)
	s.tool = now.Tool(s.request.ID)
}

// trimmed returns the name of a tool without blanks around it and its parts.
func trimmed(name string) string {
	server, own, ok := strings.Cut(name, ":")
	if !ok {
		return strings.TrimSpace(name)
	}
	return strings.TrimSpace(server) + ":" + strings.TrimSpace(own)
}

// current returns the subject in the current configuration and with the tool of a snapshot.
func (s subject) current(cfg *config.Config, now *catalog.Snapshot) subject {
	s.cfg, s.tool = cfg, now.Tool(s.request.ID)
	if s.request.OwnNames && s.tool != nil {
		s.request.Variant = s.tool.CallWith
	}
	return s
}

// resolveNamed is resolve for a client's own tools/call, by the name that n has. The lane on
// record is the one that the tool's hints require.
func (g *Gate) resolveNamed(ctx context.Context, n *NamedCall, r *session.Request) (call, subject, *catalog.Snapshot) {
	c := call{caller: *r.Caller, stateless: r.Caller.SessionID == "", client: r, say: r.Say, size: r.Size}
	if c.params = r.Params; c.stateless {
		c.params, c.returned = g.takeReturned(ctx, r.Params)
	}
	s := subject{cfg: g.Config(), request: policy.Request{OwnNames: true, Variant: policy.CallToolDestructive, Name: n.Name, NameErr: n.Err}}
	if n.Err == nil {
		s.request.Name = n.ID.String()
		s.request.ID, s.request.NameErr = tool.ParseID(s.request.Name)
	}
	s.args.sent, s.request.ArgsErr = readArguments("arguments", wirejson.Find(r.Params, "arguments"))
	now := g.Catalog.Current()
	return c, s.current(s.cfg, now), now
}
