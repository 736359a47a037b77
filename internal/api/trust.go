package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/tool"
)

// Trust is what a person decides: which servers there are, which of them may
// run, and which tools may be called.
type Trust interface {
	AddServer(ctx context.Context, s gateway.NewServer, c gateway.Caller) (gateway.ServerView, error)
	RemoveServer(ctx context.Context, name string, c gateway.Caller) error
	EnableServer(ctx context.Context, name string, on bool, c gateway.Caller) (gateway.ServerView, error)
	QuarantineServer(ctx context.Context, name string, c gateway.Caller) (gateway.ServerView, error)
	ChangeServer(ctx context.Context, name, key string, value json.RawMessage, c gateway.Caller) (gateway.ServerView, error)
	ReviewServer(ctx context.Context, name string) (gateway.ServerReview, error)
	ApproveServer(ctx context.Context, name, fingerprint string, c gateway.Caller) (gateway.ServerReview, error)
	SwitchTool(ctx context.Context, id tool.ID, on bool, c gateway.Caller) (gateway.ToolView, error)
	ApproveTool(ctx context.Context, id tool.ID, fingerprint string, c gateway.Caller) (gateway.ToolView, error)
	BlockTool(ctx context.Context, id tool.ID, fingerprint string, c gateway.Caller) (gateway.ToolView, error)
	DiffTool(ctx context.Context, id tool.ID) (gateway.ToolDiff, error)
	Approvals(ctx context.Context) (gateway.Waiting, error)
}

// oneTool is the path of a tool for what is done with it. The name of the tool
// is one segment, so that no name can be taken for an action or hold one: a
// slash in it is written %2F.
const oneTool = "/servers/{name}/tools/{tool}"

// trustRoutes is the part of the table that a person decides with.
func (s *Server) trustRoutes() []route {
	server := param{name: "name", in: inPath, doc: "The name of the server."}
	named := []param{server}
	of := []param{server, {name: "tool", in: inPath, doc: "The tool's own name, percent-encoded as one segment: a slash in it is %2F."}}
	post := func(path, id, summary string, params []param, body form, bind func(huma.API, huma.Operation)) route {
		return route{method: http.MethodPost, path: path, id: id, right: Decide, summary: summary, params: params, body: body, bind: bind}
	}
	none, pinned := form{}, fingerprintForm()
	return []route{
		{method: http.MethodGet, path: "/approvals", id: "listApprovals", right: Look,
			summary: "Everything that waits for a person: servers and tools", bind: handle(s.approvals)},
		post("/servers", "addServer", "Write a server into the configuration file", nil, serverForm(), handle(s.addServer)),
		{method: http.MethodPatch, path: "/servers/{name}", id: "changeServer", right: Decide, body: changeForm(), params: named,
			summary: "Change one thing about a server; null takes a key out of the file", bind: handle(s.changeServer)},
		{method: http.MethodDelete, path: "/servers/{name}", id: "removeServer", right: Decide, params: named,
			summary: "Take a server out of the configuration file, or drop one that was proposed", bind: handle(s.removeServer)},
		post("/servers/{name}/enable", "enableServer", "Enable a server", named, none, handle(s.enableServer(true))),
		post("/servers/{name}/disable", "disableServer", "Disable a server: it is stopped", named, none, handle(s.enableServer(false))),
		post("/servers/{name}/quarantine", "quarantineServer", "Put a server back into quarantine: it is stopped until it is approved", named, none, handle(s.quarantineServer)),
		{method: http.MethodGet, path: "/servers/{name}/review", id: "reviewServer", right: Look, params: named,
			summary: "What is to be looked at before a server is approved: how it is launched, its definitions, what the scanner found", bind: handle(s.reviewServer)},
		post("/servers/{name}/approve", "approveServer", "Approve the stage of a review that has this fingerprint", named, pinned, handle(s.approveServer)),
		post(oneTool+"/enable", "enableTool", "Switch a tool on", of, none, handle(s.switchTool(true))),
		post(oneTool+"/disable", "disableTool", "Switch a tool off", of, none, handle(s.switchTool(false))),
		post(oneTool+"/approve", "approveTool", "Approve the definition that has this fingerprint", of, pinned, handle(s.decideTool(Trust.ApproveTool))),
		post(oneTool+"/block", "blockTool", "Refuse the definition that has this fingerprint: none of the tool is accepted by itself from then on", of, pinned, handle(s.decideTool(Trust.BlockTool))),
		{method: http.MethodGet, path: oneTool + "/diff", id: "diffTool", right: Look, params: of,
			summary: "A tool's definition beside the approved one, word by word and hint by hint", bind: handle(s.diffTool)},
	}
}

// fingerprintForm is the body of what decides about something seen.
func fingerprintForm() form {
	return form{
		example: `{"fingerprint": "…"} with the fingerprint of what you have seen`,
		fields:  []field{{"fingerprint", word("What was seen. When it is another by now, nothing happens: 409 CONFLICT."), true}},
	}
}

// serverForm is the body of POST /servers.
func serverForm() form {
	strings := &huma.Schema{Type: huma.TypeString}
	list := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeArray, Items: strings, Description: doc}
	}
	texts := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: strings, Description: doc}
	}
	return form{
		example: `{"name": "files", "command": "npx", "args": ["-y", "…"]} or {"name": "remote", "url": "https://…"}`,
		fields: []field{
			{"name", word("The name of the server."), true},
			{"command", word("The program to start; either this or url."), false},
			{"args", list("Its arguments."), false},
			{"env", texts("Its environment variables; values may hold references such as ${env:NAME}."), false},
			{"working_dir", word("The directory that it starts in."), false},
			{"url", word("Where the server answers; either this or command."), false},
			{"headers", texts("Headers to send; values may hold references such as ${env:NAME}."), false},
			{"trust", word("What becomes of tools that nobody has approved.", "manual", "scan", "auto"), false},
			{"quarantined", &huma.Schema{Type: huma.TypeBoolean, Description: "Review the server before it is started."}, false},
		},
	}
}

// changeForm is the body of PATCH /servers/{name}.
func changeForm() form {
	globs := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeArray, Nullable: true, Items: &huma.Schema{Type: huma.TypeString}, Description: doc}
	}
	trust := word("What becomes of tools that nobody has approved.", "manual", "scan", "auto")
	trust.Nullable = true
	return form{
		example: `one of them, such as {"enabled": false}`,
		fields: []field{
			{"enabled", &huma.Schema{Type: huma.TypeBoolean, Description: "Whether the server runs."}, false},
			{"quarantined", &huma.Schema{Type: huma.TypeBoolean, Enum: []any{true}, Description: "Only true: a quarantine ends with an approval."}, false},
			{"trust", trust, false},
			{"enabled_tools", globs("The only tools that may be called, names or patterns."), false},
			{"disabled_tools", globs("Tools that may not be called, names or patterns."), false},
			{"hint_overrides", &huma.Schema{Type: huma.TypeObject, Nullable: true, AdditionalProperties: true,
				Description: "Names or patterns of tools with the hints that count instead of the server's."}, false},
		},
	}
}

// Removed is the answer of DELETE /servers/{name}.
type Removed struct {
	Removed string `json:"removed" doc:"The name of the server that is gone."`
}

func (s *Server) approvals(ctx context.Context, _ *request) (gateway.Waiting, error) {
	w, err := s.deps.Gateway.Approvals(ctx)
	w.Servers, w.Tools = nonNil(w.Servers), nonNil(w.Tools)
	return w, err
}

func (s *Server) addServer(ctx context.Context, r *request) (gateway.ServerView, error) {
	var n gateway.NewServer
	targets := map[string]any{
		"name": &n.Name, "command": &n.Command, "args": &n.Args, "env": &n.Env, "working_dir": &n.WorkingDir,
		"url": &n.URL, "headers": &n.Headers, "trust": &n.Trust, "quarantined": &n.Quarantined,
	}
	if err := readInto(r, serverForm(), targets); err != nil {
		return gateway.ServerView{}, err
	}
	return s.deps.Gateway.AddServer(ctx, n, caller(r))
}

// changeServer does what the one member asks for. There is one, since each
// change is put into effect, or refused, by itself.
func (s *Server) changeServer(ctx context.Context, r *request) (gateway.ServerView, error) {
	key, value, err := readChange(r)
	if err != nil {
		return gateway.ServerView{}, err
	}
	on, isBool := strictjson.Bool(value)
	switch {
	case key != "enabled" && key != "quarantined":
		if strictjson.Kind(value) == 'n' {
			value = nil
		}
		return s.deps.Gateway.ChangeServer(ctx, r.path("name"), key, value, caller(r))
	case !isBool:
		return gateway.ServerView{}, changeForm().wrongType(key)
	case key == "enabled":
		return s.deps.Gateway.EnableServer(ctx, r.path("name"), on, caller(r))
	case on:
		return s.deps.Gateway.QuarantineServer(ctx, r.path("name"), caller(r))
	}
	return gateway.ServerView{}, invalidValue(key, "false", "true").
		WithHint("To end a quarantine, look at GET " + Prefix + "/servers/" + segment(r.path("name")) + "/review and approve what it shows.")
}

// readChange reads the one member of a change.
func readChange(r *request) (key string, value []byte, err error) {
	body, err := readBody(r.http)
	if err != nil {
		return "", nil, err
	}
	members := 0
	err = changeForm().read(body, func(name string, v []byte) error {
		if !slices.Contains(changeForm().names(), name) {
			return changeForm().unknown(name)
		}
		key, value = name, v
		members++
		return nil
	})
	if err == nil && members != 1 {
		err = problem.Newf(problem.InvalidRequest, "The body of the request has %d members: one change at a time.", members).
			WithHint("Send " + changeForm().example + ".")
	}
	return key, value, err
}

func (s *Server) removeServer(ctx context.Context, r *request) (Removed, error) {
	return Removed{r.path("name")}, s.deps.Gateway.RemoveServer(ctx, r.path("name"), caller(r))
}

func (s *Server) enableServer(on bool) func(context.Context, *request) (gateway.ServerView, error) {
	return func(ctx context.Context, r *request) (gateway.ServerView, error) {
		return s.deps.Gateway.EnableServer(ctx, r.path("name"), on, caller(r))
	}
}

func (s *Server) quarantineServer(ctx context.Context, r *request) (gateway.ServerView, error) {
	return s.deps.Gateway.QuarantineServer(ctx, r.path("name"), caller(r))
}

func (s *Server) reviewServer(ctx context.Context, r *request) (gateway.ServerReview, error) {
	v, err := s.deps.Gateway.ReviewServer(ctx, r.path("name"))
	return listsOf(v), err
}

func (s *Server) approveServer(ctx context.Context, r *request) (gateway.ServerReview, error) {
	fingerprint, err := readFingerprint(r)
	if err != nil {
		return gateway.ServerReview{}, err
	}
	v, err := s.deps.Gateway.ApproveServer(ctx, r.path("name"), fingerprint, caller(r))
	return listsOf(v), err
}

// listsOf makes the lists of a review lists, also when they are empty.
func listsOf(v gateway.ServerReview) gateway.ServerReview {
	v.Tools, v.Findings = nonNil(v.Tools), nonNil(v.Findings)
	for i := range v.Tools {
		v.Tools[i].Findings = nonNil(v.Tools[i].Findings)
	}
	return v
}

func (s *Server) switchTool(on bool) func(context.Context, *request) (gateway.ToolView, error) {
	return func(ctx context.Context, r *request) (gateway.ToolView, error) {
		return s.deps.Gateway.SwitchTool(ctx, toolOf(r), on, caller(r))
	}
}

func (s *Server) decideTool(do func(Trust, context.Context, tool.ID, string, gateway.Caller) (gateway.ToolView, error)) func(context.Context, *request) (gateway.ToolView, error) {
	return func(ctx context.Context, r *request) (gateway.ToolView, error) {
		fingerprint, err := readFingerprint(r)
		if err != nil {
			return gateway.ToolView{}, err
		}
		return do(s.deps.Gateway, ctx, toolOf(r), fingerprint, caller(r))
	}
}

func (s *Server) diffTool(ctx context.Context, r *request) (gateway.ToolDiff, error) {
	d, err := s.deps.Gateway.DiffTool(ctx, toolOf(r))
	d.Changes, d.Findings = nonNil(d.Changes), nonNil(d.Findings)
	return d, err
}

func toolOf(r *request) tool.ID { return tool.ID{Server: r.path("name"), Tool: r.path("tool")} }

// readFingerprint reads the body of a decision.
func readFingerprint(r *request) (string, error) {
	var fingerprint string
	err := readInto(r, fingerprintForm(), map[string]any{"fingerprint": &fingerprint})
	return fingerprint, err
}

// readInto reads the body of a request into the targets of its members. A
// value of a wrong type is not repeated: it may be a secret.
func readInto(r *request, f form, targets map[string]any) error {
	body, err := readBody(r.http)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	if err := f.read(body, func(name string, value []byte) error {
		target, ok := targets[name]
		if !ok {
			return f.unknown(name)
		}
		if strictjson.Kind(value) == 'n' {
			return nil // as good as nothing
		}
		given[name] = true
		if err := json.Unmarshal(value, target); err != nil || holdsNull(value) {
			return f.wrongType(name)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, one := range f.fields {
		if one.required && !given[one.name] {
			return problem.Newf(problem.InvalidParameter, "The member '%s' is required.", one.name).
				WithHint("Send "+f.example+".").With("parameter", one.name)
		}
	}
	return nil
}

// holdsNull says whether a list or an object has null for a member, which
// would be taken for an empty text.
func holdsNull(value []byte) bool {
	isNull := func(member []byte) error {
		if strictjson.Kind(member) == 'n' {
			return errNull
		}
		return nil
	}
	switch strictjson.Kind(value) {
	case '[':
		return strictjson.Elements(value, isNull) != nil
	case '{':
		return strictjson.Members(value, func(_, member []byte) error { return isNull(member) }) != nil
	}
	return false
}

var errNull = errors.New("null")
