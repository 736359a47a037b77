package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/adapt"
	"mcpproxy/internal/alias"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/door"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// namedRequest is a client's request that names something as the surface of all servers
// does, on its way to the server whose it is.
type namedRequest struct {
	session.Request
	server string
}

// DoAll passes a request on to the server that its name stands for, with the
// server's own name in the place of it. What a server asks meanwhile has an id
// that names the server: see AskedBy. open returns the client's own session with
// a server; nil is for requests that stand for themselves.
func (g *Gateway) DoAll(ctx context.Context, q *session.Request, open func(ctx context.Context, server string) (session.Session, error)) (session.Reply, error) {
	var err error
	r := &namedRequest{Request: *q}
	withoutTasks(&r.Request)
	switch r.Method {
	case mcp.CallTool:
		return g.callAll(ctx, r, open)
	case mcp.GetPrompt:
		err = g.routePrompt(ctx, r)
	case mcp.ReadResource:
		err = g.routeResource(ctx, r, r.Params, func(params json.RawMessage) json.RawMessage { return params })
	case mcp.Complete:
		err = g.routeCompletion(ctx, r)
	default:
		return session.Reply{Status: http.StatusNotFound, Error: &jsonrpc.Error{
			Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + clip(r.Method)}}, nil
	}
	if err != nil {
		return session.Reply{}, err
	}
	r.nameAsks()
	var to session.Doer = g.Surface(r.server)
	if open != nil {
		if to, err = open(ctx, r.server); err != nil {
			return session.Reply{}, err
		}
	}
	a, err := to.Do(ctx, &r.Request)
	return a, ended(r.server, err)
}

// ended makes an ordinary failure of the end of a conversation: it is one of
// several that the client's session has, which goes on.
func ended(server string, err error) error {
	if !errors.Is(err, session.ErrOver) {
		return err
	}
	return problem.Newf(problem.ServerUnavailable, "The session with server '%s' has ended.", server).
		WithHint("The request may have been carried out: check before you try again. The next one opens a new session.").
		With("server", server)
}

// callAll takes a client's tools/call through the door.
func (g *Gateway) callAll(ctx context.Context, r *namedRequest, open func(ctx context.Context, server string) (session.Session, error)) (session.Reply, error) {
	name, isText := rawjson.String(rawjson.Find(r.Params, "name"))
	if !isText {
		return session.Reply{}, g.door.Unnamed(ctx, "", &r.Request)
	}
	n := door.Named{Name: name, Open: open}
	var known bool
	if n.ID, known = g.named(name); known {
		r.server = n.ID.Server
		r.rename("name", n.ID.Tool)
		r.nameAsks()
	} else {
		n.Err = errors.New("tools of all servers are called by the name that tools/list gives, server__tool")
	}
	reply, err := g.door.CallNamed(ctx, n, &r.Request)
	if !known && err != nil {
		err = problem.Newf(problem.InvalidName, "There is no tool '%s'.", clip(name)).
			WithHint("Use the name exactly as tools/list gives it: server__tool.").With("parameter", "name")
	}
	return reply, ended(n.ID.Server, err)
}

// rename puts the server's own name in the place of the one that the client
// used, and into the header that repeats it.
func (r *namedRequest) rename(member, own string) {
	r.Params = rawjson.SetMember(r.Params, member, rawjson.AppendString(nil, own))
	fields := slices.Clone(r.Fields)
	for i, f := range fields {
		if strings.EqualFold(f.Name, mcp.HeaderName) {
			fields[i] = mcp.Field{Name: mcp.HeaderName, Value: mcp.HeaderText(own)}
		}
	}
	r.Fields = fields
}

// nameAsks makes the ids of what the server asks name the server, and leaves out
// what is not about the request: changes are announced for all servers.
func (r *namedRequest) nameAsks() {
	say, server := r.Say, r.server
	if say == nil {
		return
	}
	r.Say = func(e session.Event) {
		switch {
		case e.ID == nil && (strings.HasSuffix(e.Method, "/list_changed") || e.Method == mcp.ResourceUpdated):
			return
		case e.ID != nil:
			e.ID = rawjson.AppendString(nil, server+":"+string(e.ID))
		}
		say(e)
	}
}

// AskedBy gives the server that a client's answer is for, and the id under
// which it asked.
func AskedBy(id json.RawMessage) (server string, own json.RawMessage, ok bool) {
	s, _ := rawjson.String(id)
	server, rest, ok := strings.Cut(s, ":")
	own = json.RawMessage(rest)
	if !ok || !json.Valid(own) || rawjson.Kind(own) != '"' && rawjson.Kind(own) != '0' {
		return "", nil, false
	}
	return server, own, true
}

// allTools are the tools of one snapshot by the names that they have among
// those of all servers. It is immutable.
type allTools struct {
	version  uint64             // of the snapshot, which must not outlive its time for this
	callable []named            // by name
	digested map[string]tool.ID // by the names that do not say what they stand for
	digest   [32]byte           // of all that a list of them says
}

type named struct {
	name string
	tool *catalog.Tool
}

// named gives the tool that a name stands for, whether there is one or not.
func (g *Gateway) named(name string) (tool.ID, bool) {
	if server, own, ok := alias.Split(name); ok {
		return tool.ID{Server: server, Tool: own}, tool.CheckServerName(server) == nil
	}
	if !alias.Digested(name) {
		return tool.ID{}, false
	}
	id, ok := g.all().digested[name]
	return id, ok
}

// all gives the tools as they are now.
func (g *Gateway) all() *allTools {
	snapshot := g.Catalog.Current()
	if a := g.everything.Load(); a != nil && a.version >= snapshot.Version() {
		return a
	}
	g.naming.Lock()
	defer g.naming.Unlock()
	snapshot = g.Catalog.Current()
	if a := g.everything.Load(); a != nil && a.version >= snapshot.Version() {
		return a
	}
	a := nameAll(snapshot)
	g.everything.Store(a)
	return a
}

func nameAll(s *catalog.Snapshot) *allTools {
	a := &allTools{version: s.Version(), digested: map[string]tool.ID{}}
	for _, server := range s.Servers() {
		for _, t := range server.Tools {
			name := alias.Name(t.ID.Server, t.ID.Tool)
			if alias.Digested(name) {
				a.digested[name] = t.ID
			}
			if t.Status == policy.Callable && !t.ForClients {
				a.callable = append(a.callable, named{name, t})
			}
		}
	}
	slices.SortFunc(a.callable, func(x, y named) int { return strings.Compare(x.name, y.name) })
	sum := newDigest()
	for _, n := range a.callable {
		fingerprint := n.tool.Fingerprint()
		sum.add([]byte(n.name))
		sum.add(fingerprint[:])
		sum.add(n.tool.Effective.AppendJSON(nil))
	}
	a.digest = sum.end()
	return a
}

// definition is the tool's own, under its name among all and with the effective
// hints: everything else is the server's bytes.
func (n named) definition() json.RawMessage {
	raw := rawjson.SetMember(n.tool.Raw, "name", rawjson.AppendString(nil, n.name))
	said, effective := n.tool.Hints, n.tool.Effective
	if said == effective {
		return raw
	}
	annotations := json.RawMessage(rawjson.Find(raw, "annotations"))
	if rawjson.Kind(annotations) != '{' {
		annotations = nil
	}
	if effective.Title != said.Title {
		annotations = rawjson.SetMember(annotations, "title", rawjson.AppendString(nil, effective.Title))
	}
	for _, h := range []struct {
		name      string
		was, then tool.Tri
	}{
		{"readOnlyHint", said.ReadOnly, effective.ReadOnly},
		{"destructiveHint", said.Destructive, effective.Destructive},
		{"idempotentHint", said.Idempotent, effective.Idempotent},
		{"openWorldHint", said.OpenWorld, effective.OpenWorld},
	} {
		switch {
		case h.was == h.then:
		case h.then == tool.True:
			annotations = rawjson.SetMember(annotations, h.name, json.RawMessage("true"))
		case h.then == tool.False:
			annotations = rawjson.SetMember(annotations, h.name, json.RawMessage("false"))
		}
	}
	return rawjson.SetMember(raw, "annotations", annotations)
}

// listTime bounds how long a list of all servers waits for the slowest.
const listTime = 5 * time.Second

// withoutTasks is a request of a client of all servers as one of a client that
// knows no tasks: their ids say nothing about the server.
func withoutTasks(r *session.Request) {
	if r.Method == mcp.CallTool {
		r.Params = rawjson.DropMember(r.Params, "task")
	}
	r.Params = adapt.WithoutTasks(r.Params)
}
