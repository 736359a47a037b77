package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// aggregateRequest is a client's request on its way to the server that its name stands for.
type aggregateRequest struct {
	session.Request
	server string
}

// pass passes a request on to the server that it is for. What the server asks
// meanwhile has an id that names the server: see askedBy.
func (s *Aggregate) pass(ctx context.Context, asked *session.Request, open aggregateOpener) (session.Reply, error) {
	r := &aggregateRequest{Request: *asked}
	r.Head = nil                                  // what one server says in it is not said for all
	r.Params = mcp.RemoveTasksExtension(r.Params) // the id of a task does not tell whose it is
	if r.Method == mcp.CallTool {
		return s.call(ctx, r, open)
	}
	err := s.route(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	r.nameQuestions()
	if open == nil {
		a, err := s.Gate.Surface(r.server).Do(ctx, &r.Request)
		return a, ended(r.server, err)
	}
	a, err := passIn(ctx, r, open)
	if session.IsNotSent(err) && ctx.Err() == nil {
		a, err = passIn(ctx, r, open) // the server has forgotten the session: once more in another one
	}
	return a, ended(r.server, err)
}

// passIn passes a request on in the client's session with the server.
func passIn(ctx context.Context, r *aggregateRequest, open aggregateOpener) (session.Reply, error) {
	to, err := open(ctx, r.server)
	if err != nil {
		return session.Reply{}, err
	}
	return to.Do(ctx, &r.Request)
}

// call takes a tools/call through the gate.
func (s *Aggregate) call(ctx context.Context, r *aggregateRequest, open aggregateOpener) (session.Reply, error) {
	r.Params = wirejson.DropMember(r.Params, "task")
	name, isText := wirejson.String(wirejson.Find(r.Params, "name"))
	if !isText {
		return session.Reply{}, s.Gate.Unnamed(ctx, "", &r.Request)
	}
	n := NamedCall{Name: name, Open: open}
	var known bool
	if n.ID, known = s.toolOf(&r.Request, name); known {
		r.server = n.ID.Server
		r.rename("name", n.ID.Tool)
		r.nameQuestions()
	} else {
		n.Err = errors.New("tools of all servers are called by the name that tools/list gives, server__tool")
	}
	a, err := s.Gate.CallNamed(ctx, n, &r.Request)
	if !known && err != nil {
		err = problem.Newf(problem.InvalidName, "There is no tool '%s'.", problem.ClipName(name)).
			WithHint("Use the name exactly as tools/list gives it: server__tool.").With("parameter", "name")
	}
	return a, ended(n.ID.Server, err)
}

// toolOf returns the tool that a name stands for, whether there is one or not. A name
// that does not say what it stands for is known within the client's scope alone.
func (s *Aggregate) toolOf(r *session.Request, name string) (tool.ID, bool) {
	if server, own, ok := tool.SplitAlias(name); ok {
		return tool.ID{Server: server, Tool: own}, tool.CheckServerName(server) == nil
	}
	if tool.IsDigestedAlias(name) {
		if t := s.tools(r).digested[name]; t != nil {
			return t.ID, true
		}
	}
	return tool.ID{}, false
}

// ended makes an ordinary failure of the end of one server's session: it is one
// of several that the client's session has, which goes on.
func ended(server string, err error) error {
	if !errors.Is(err, session.ErrEnded) {
		return err
	}
	return problem.Newf(problem.ServerUnavailable, "The session with server '%s' has ended.", server).
		WithHint("The request may have been carried out: check before you try again. The next one opens a new session.").
		With("server", server)
}

// rename puts the server's own name in the place of the one that the client
// used, and into the header that repeats it.
func (r *aggregateRequest) rename(member, own string) {
	r.Params = wirejson.SetMember(r.Params, member, wirejson.AppendString(nil, own))
	r.Headers = slices.Clone(r.Headers)
	for i, f := range r.Headers {
		if strings.EqualFold(f.Name, mcp.HeaderName) {
			r.Headers[i] = mcp.Header{Name: mcp.HeaderName, Value: mcp.EncodeHeaderValue(own)}
		}
	}
}

// nameQuestions makes the ids of what the server asks name the server, and leaves
// out what is not about the request: changes are announced for all servers.
func (r *aggregateRequest) nameQuestions() {
	say, server := r.Say, r.server
	if say == nil {
		return
	}
	r.Say = func(e session.Event) {
		switch {
		case e.ID == nil && (strings.HasSuffix(e.Method, "/list_changed") || e.Method == mcp.ResourceUpdated):
			return
		case e.ID != nil:
			e.ID = wirejson.AppendString(nil, server+":"+string(e.ID))
		}
		say(e)
	}
}

// askedBy returns the server that a client's answer is for, and the id under
// which it asked.
func askedBy(id json.RawMessage) (server string, own json.RawMessage, ok bool) {
	s, _ := wirejson.String(id)
	server, rest, ok := strings.Cut(s, ":")
	own = json.RawMessage(rest)
	if !ok || !json.Valid(own) || wirejson.Kind(own) != '"' && wirejson.Kind(own) != '0' {
		return "", nil, false
	}
	return server, own, true
}

// route finds the server of what a request names: a prompt or a resource, or the
// one whose argument is to be completed.
func (s *Aggregate) route(ctx context.Context, r *aggregateRequest) error {
	part, member, find := r.Params, "name", s.promptOf
	bad := problem.New(problem.InvalidParameter, "params.name must be a string: the prompt to get", "")
	completes := r.Method == mcp.Complete
	kind := ""
	if completes {
		part = wirejson.Find(r.Params, "ref")
		kind, _ = wirejson.String(wirejson.Find(part, "type"))
	}
	switch {
	case r.Method == mcp.ReadResource, kind == "ref/resource":
		member, find = "uri", s.resourceOf
		bad = problem.New(problem.InvalidParameter, "the uri must be a string: the address of a resource", "")
	case completes && kind != "ref/prompt":
		return problem.New(problem.InvalidParameter, "params.ref must be of type ref/prompt or ref/resource.", "").With("parameter", "ref")
	}
	name, ok := wirejson.String(wirejson.Find(part, member))
	if !ok && kind != "ref/prompt" { // there, none is found
		return bad
	}
	own, err := find(ctx, r, name)
	switch {
	case err != nil || own == name:
		return err
	case completes:
		r.Params = wirejson.SetMember(r.Params, "ref", wirejson.SetMember(part, member, wirejson.AppendString(nil, own)))
	default:
		r.rename(member, own)
	}
	return nil
}

// promptOf has the request go to the server whose prompt a name stands for, and
// returns the server's own name.
func (s *Aggregate) promptOf(ctx context.Context, r *aggregateRequest, name string) (own string, err error) {
	if server, own, ok := tool.SplitAlias(name); ok && s.Gate.Reachable(server, r.Caller) == nil {
		r.server = server
		return own, nil
	}
	for _, e := range s.entries(ctx, &r.Request, catalog.ListPrompts) {
		if e.name == name {
			r.server = e.server
			return e.own, nil
		}
	}
	return "", problem.Newf(problem.InvalidParameter, "There is no prompt '%s'.", problem.ClipName(name)).
		WithHint("Prompts of all servers have the names that prompts/list gives, server__prompt.").With("parameter", "name")
}

// resourceOf has the request go to the server that an address, or a template of
// addresses, belongs to, and returns the server's own address: to the server that
// it names, else the only one that lists it, else the only one with a template
// that it fits, else the only one that has resources.
func (s *Aggregate) resourceOf(ctx context.Context, r *aggregateRequest, uri string) (own string, err error) {
	if server, own, ok := tool.SplitAliasURI(uri); ok {
		if p := s.Gate.Reachable(server, r.Caller); p != nil {
			return "", p
		}
		r.server = server
		return own, nil
	}
	for _, l := range []catalog.ListKind{catalog.ListResources, catalog.ListTemplates} {
		var owners []string
		for _, e := range s.entries(ctx, &r.Request, l) {
			if (e.own == uri || l == catalog.ListTemplates && tool.MatchesTemplate(e.own, uri)) && !slices.Contains(owners, e.server) {
				owners = append(owners, e.server)
			}
		}
		switch {
		case len(owners) == 1:
			r.server = owners[0]
			return uri, nil
		case len(owners) > 1:
			return "", ambiguous(uri, owners)
		}
	}
	able := 0
	for _, server := range s.readable(&r.Request) {
		if catalog.HasCapability(server, catalog.ListResources.Capability()) {
			r.server = server.Name
			able++
		}
	}
	if able == 1 {
		return uri, nil
	}
	return "", problem.Newf(problem.InvalidParameter, "There is no resource '%s'.", problem.ClipName(uri)).
		WithHint("Use an address of resources/list, or name the server in it: "+tool.AliasURI("SERVER", problem.ClipName(uri))+".").With("parameter", "uri")
}

// maxOwners is how many servers are named that an address may belong to.
const maxOwners = 5

func ambiguous(uri string, owners []string) *problem.Problem {
	var named []string
	for _, server := range owners[:min(len(owners), maxOwners)] {
		named = append(named, tool.AliasURI(server, problem.ClipName(uri)))
	}
	return problem.Newf(problem.InvalidParameter, "Several servers have a resource '%s'.", problem.ClipName(uri)).
		WithHint("Name the server in the address: "+strings.Join(named, ", ")+".").With("parameter", "uri")
}
