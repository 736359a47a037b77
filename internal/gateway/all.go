package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/alias"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// AllRequest is a client's request that names something as the surface of all
// servers does. It is passed on to the server whose it is.
type AllRequest struct {
	RelayRequest // without Server and Conversation
	// Talk gives the client's own conversation with a server; nil for requests
	// that stand for themselves.
	Talk func(ctx context.Context, server string) (*upstream.Conversation, error)
}

// The methods that are passed on to one server.
const (
	methodGetPrompt    = "prompts/get"
	methodReadResource = "resources/read"
	methodComplete     = "completion/complete"
)

// RelayAll passes a request on to the server that its name stands for, as
// Relay does, with the server's own name in the place of it. What a server
// asks meanwhile has an id that names the server: see AskedBy.
func (g *Gateway) RelayAll(ctx context.Context, r AllRequest) (upstream.Answer, error) {
	var err error
	withoutTasks(&r.Request)
	switch r.Request.Method {
	case methodCallTool:
		return g.callAll(ctx, &r)
	case methodGetPrompt:
		err = g.routePrompt(ctx, &r)
	case methodReadResource:
		err = g.routeResource(ctx, &r, r.Request.Params, func(params json.RawMessage) json.RawMessage { return params })
	case methodComplete:
		err = g.routeCompletion(ctx, &r)
	default:
		return upstream.Answer{Status: http.StatusNotFound, Error: &jsonrpc.Error{
			Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + clip(r.Request.Method)}}, nil
	}
	if err != nil {
		return upstream.Answer{}, err
	}
	r.overheard()
	if r.Talk != nil {
		if r.Conversation, err = r.Talk(ctx, r.Server); err != nil {
			return upstream.Answer{}, err
		}
	}
	a, err := g.Relay(ctx, r.RelayRequest)
	return a, ended(r.Server, err)
}

// ended makes an ordinary failure of the end of a conversation: it is one of
// several that the client's session has, which goes on.
func ended(server string, err error) error {
	if !Over(err) {
		return err
	}
	return problem.Newf(problem.ServerUnavailable, "The session with server '%s' has ended.", server).
		WithHint("The request may have been carried out: check before you try again. The next one opens a new session.").
		With("server", server)
}

// callAll takes a client's tools/call through the door.
func (g *Gateway) callAll(ctx context.Context, r *AllRequest) (upstream.Answer, error) {
	name, isText := strictjson.String(strictjson.Find(r.Request.Params, "name"))
	if !isText {
		return upstream.Answer{}, problem.New(problem.InvalidName, "params.name must be a string: the tool to call", "")
	}
	id, known := g.named(name)
	c := g.passing(&r.RelayRequest, id)
	if !known {
		c.req.Name, c.misnamed = name, errors.New("tools of all servers are called by the name that tools/list gives, server__tool")
	} else {
		r.Server = id.Server
		g.rename(r, "name", id.Tool)
		r.overheard()
		c.passed.Request, c.talk = r.Request, r.Talk
	}
	a, err := g.pass(ctx, c, r.Talk == nil)
	if !known && err != nil {
		err = problem.Newf(problem.InvalidName, "There is no tool '%s'.", clip(name)).
			WithHint("Use the name exactly as tools/list gives it: server__tool.").With("parameter", "name")
	}
	return a, ended(id.Server, err)
}

// rename puts the server's own name in the place of the one that the client
// used, and into the header that repeats it.
func (g *Gateway) rename(r *AllRequest, member, own string) {
	r.Request.Params = jsonrpc.SetMember(r.Request.Params, member, text(own))
	fields := slices.Clone(r.Request.Fields)
	for i, f := range fields {
		if named := upstream.NameField(own); strings.EqualFold(f.Name, named.Name) {
			fields[i] = named
		}
	}
	r.Request.Fields = fields
}

// text is s as JSON.
func text(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string can always be encoded
	return b
}

// overheard makes the ids of what the server asks name the server, and leaves
// out what is not about the request: changes are announced for all servers.
func (r *AllRequest) overheard() {
	say, server := r.Request.Events, r.Server
	if say == nil {
		return
	}
	r.Request.Events = func(e upstream.Event) {
		switch {
		case e.ID == nil && (strings.HasSuffix(e.Method, "/list_changed") || e.Method == "notifications/resources/updated"):
			return
		case e.ID != nil:
			e.ID = text(server + ":" + string(e.ID))
		}
		say(e)
	}
}

// AskedBy gives the server that a client's answer is for, and the id under
// which it asked.
func AskedBy(id json.RawMessage) (server string, own json.RawMessage, ok bool) {
	s, _ := strictjson.String(id)
	server, rest, ok := strings.Cut(s, ":")
	own = json.RawMessage(rest)
	if !ok || !json.Valid(own) || strictjson.Kind(own) != '"' && strictjson.Kind(own) != '0' {
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
	raw := jsonrpc.SetMember(n.tool.Raw, "name", text(n.name))
	said, effective := n.tool.Hints, n.tool.Effective
	if said == effective {
		return raw
	}
	annotations := json.RawMessage(strictjson.Find(raw, "annotations"))
	if strictjson.Kind(annotations) != '{' {
		annotations = nil
	}
	if effective.Title != said.Title {
		annotations = jsonrpc.SetMember(annotations, "title", text(effective.Title))
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
			annotations = jsonrpc.SetMember(annotations, h.name, json.RawMessage("true"))
		case h.then == tool.False:
			annotations = jsonrpc.SetMember(annotations, h.name, json.RawMessage("false"))
		}
	}
	return jsonrpc.SetMember(raw, "annotations", annotations)
}

// listTime bounds how long a list of all servers waits for the slowest.
const listTime = 5 * time.Second
