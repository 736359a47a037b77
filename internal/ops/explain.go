package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Explainer predicts the outcome of a call and explains the decision.
type Explainer struct {
	Gateway *Gateway
	Tokens  *auth.AgentTokens
	Account *permission.AccountClients // the account whose MCP clients are examined
}

// ExplainRequest is a call to explain.
type ExplainRequest struct {
	Who  string          `json:"who" required:"true" doc:"The caller: a client such as claude-code, a profile, or a token as agent:NAME. If a client and a profile have the same name, write client:NAME or profile:NAME; the name alone means the profile."`
	Name string          `json:"name" required:"true" doc:"The tool id: server:tool."`
	Args json.RawMessage `json:"args" type:"object" doc:"The arguments to check against the tool's schema. Without them, no arguments are checked."`
}

// Example returns an example for the OpenAPI document.
func (ExplainRequest) Example() string {
	return `{"who": "claude-code", "name": "server:tool", "args": {}}`
}

// Prospect is the predicted outcome of a call, with explanations.
type Prospect struct {
	Name string      `json:"name" doc:"The tool id."`
	As   ProspectWho `json:"as"`
	tool.DecisionFacts
	Status         string         `json:"status,omitempty" words:"status" doc:"Why the tool cannot be called. Absent if it can."`
	Further        []string       `json:"further_statuses,omitempty" doc:"Further reasons why the tool cannot be called."`
	ConfigRevision string         `json:"config_revision"`
	Lanes          []ProspectLane `json:"lanes" doc:"The result for each of the three calling tools."`
	Can            bool           `json:"can" doc:"Whether MCPProxy allows the call in at least one lane, possibly after approval."`
	Notes          []string       `json:"notes" doc:"Additional notes for the user."`
}

// ProspectWho is the caller of the explained call.
type ProspectWho struct {
	Kind      string `json:"kind" enum:"client,profile,agent"`
	Name      string `json:"name"`
	Profiles  string `json:"profiles,omitempty" doc:"The profiles that limit the caller, separated by commas. Absent if there are none."`
	Token     string `json:"token,omitempty" doc:"The name of the agent token that the caller presents. Absent if there is none."`
	Connected bool   `json:"connected" doc:"For a client: whether one of its files contains MCPProxy."`
	Address   string `json:"address,omitempty" doc:"For a client: the path of the MCPProxy endpoint that it uses, or several separated by commas."`
}

// ProspectLane is the predicted outcome of the call in one lane.
type ProspectLane struct {
	Tool     string           `json:"tool" words:"variant"`
	Outcome  activity.Verdict `json:"outcome" doc:"The decision of MCPProxy."`
	Check    string           `json:"check,omitempty" words:"check" doc:"The check that rejects the call. Absent if the call is not rejected."`
	Code     string           `json:"code,omitempty" doc:"The error code of the rejection. Absent if the call is not rejected."`
	Why      string           `json:"why" doc:"The rule that decides, in words."`
	Hint     string           `json:"hint,omitempty" doc:"What the user can do about a rejection. Absent if there is nothing."`
	Warnings []string         `json:"warnings,omitempty"`
	Client   *ProspectClient  `json:"client,omitempty" doc:"What the client does before it sends the call, according to its permission rules. Absent if the caller is not a client."`
}

// ProspectClient describes how an MCP client reacts when its model uses the calling tool.
type ProspectClient struct {
	Verdict permission.Verdict `json:"verdict" enum:"runs,asks,denied,unknown"`
	Rule    permission.Rule    `json:"rule" doc:"The rule of the client that applies."`
	Why     string             `json:"why,omitempty" doc:"An explanation in addition to the rule. Absent if none is needed."`
}

// Explain predicts the outcome of a call in each lane.
func (p *Explainer) Explain(ctx context.Context, _ Caller, in ExplainRequest) (Prospect, error) {
	id, err := tool.ParseID(in.Name)
	if err != nil {
		return Prospect{}, problem.Newf(problem.InvalidName, "Invalid tool name '%s': %v", problem.ClipName(in.Name), err).
			WithHint("Write server:tool, as `mcpproxy tools list` shows it.")
	}
	who, err := p.findCaller(ctx, in.Who)
	if err != nil {
		return Prospect{}, err
	}
	if err := p.checkToolKnown(id); err != nil {
		return Prospect{}, err
	}
	a := Prospect{Name: id.String(), As: who.ProspectWho, Lanes: []ProspectLane{}, Notes: append([]string{}, who.notes...)}
	for _, v := range []policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive} {
		asked := gate.LaneCall{CallTool: v, Name: in.Name, Args: in.Args, Caller: who.caller}
		asked.Declared.AddParameter("intent_operation_type", []byte(`"`+v.Operation().String()+`"`))
		would := p.Gateway.DryRun(asked)
		lane := ProspectLane{Tool: v.String(), Outcome: would.Facts.Outcome, Check: would.Facts.Check, Warnings: would.Warnings, Why: allowReason(v, &would.Facts)}
		switch refused := would.Problem; {
		case refused != nil:
			lane.Code, lane.Why, lane.Hint = string(refused.Code), policy.WithoutModelAdvice(refused.Message), p.refusalRemedy(id, &would.Facts)
			if lane.Check == policy.CheckScope.String() {
				lane.Why, lane.Hint = who.scopeRefusalReason(id, v, p.Gateway), "Profiles are under profiles in the file that `mcpproxy config path` prints. To extend a token, create a new one."
			}
		case would.Asks.IsSet():
			lane.Why = "It would be held for approval, by " + would.Asks.String() + "."
		case len(would.Warnings) > 0:
			lane.Why = strings.Join(would.Warnings, " ")
		}
		a.Can = a.Can || would.Problem == nil
		if who.report != nil {
			lane.Client = who.clientVerdict(v)
		}
		a.DecisionFacts, a.Status, a.Further, a.ConfigRevision = would.Facts.DecisionFacts, would.Facts.Status, would.Facts.Further, would.Facts.ConfigRevision
		a.Lanes = append(a.Lanes, lane)
	}
	return a, nil
}

// checkToolKnown returns an error with similar names if the tool is unknown. It accepts any tool of a server whose
// tools are not listed yet.
func (p *Explainer) checkToolKnown(id tool.ID) error {
	if s := p.Gateway.Catalog.Current().Server(id.Server); s != nil && !s.Listed || s == nil && p.Gateway.Book.IsProposed(id.Server) {
		return nil
	}
	_, err := p.Gateway.findTool(id)
	if err == nil {
		return nil
	}
	is := problem.From(err)
	if near, _ := is.Detail("nearest").([]string); len(near) > 0 {
		return is.WithHint("Did you mean '" + near[0] + "'? " + is.Hint)
	}
	return err
}

// allowReason describes the rule that allows a call.
func allowReason(v policy.CallToolVariant, d *activity.Decision) string {
	said := func(f *tool.HintFact, name string) string {
		value := " said not to be "
		if f.Value {
			value = " said to be "
		}
		by := map[tool.HintSource]string{tool.FromServer: "by its server", tool.FromOverride: "by hint_overrides", tool.FromSandbox: "by the sandbox of its server", tool.FromInferred: "by the inferred hints"}[f.From]
		return "The tool is" + value + name + " " + by + "."
	}
	counts := func(f *tool.HintFact) bool { return f != nil && f.From != tool.FromDefault }
	switch h := d.Hints; {
	case d.Lane != nil && d.Lane.Declared && !d.Lane.Unread:
		return "The lanes rule of the server applies. By its arguments, the lane of the call is " + d.Lane.Operation + "."
	case v == policy.CallToolDestructive:
		return "call_tool_destructive is allowed with all hints."
	case h == nil || !counts(h.ReadOnly) && !counts(h.Destructive):
		return "No hint of the tool contradicts the lane, so the caller's intent is accepted."
	case counts(h.ReadOnly) && (v == policy.CallToolRead || !counts(h.Destructive)):
		return said(h.ReadOnly, "read-only")
	default:
		return said(h.Destructive, "destructive")
	}
}

// refusalRemedy returns a hint that tells the user how to resolve a refusal.
func (p *Explainer) refusalRemedy(id tool.ID, d *activity.Decision) string {
	switch policy.ParseCheck(d.Check) {
	case policy.CheckCallable:
		for _, s := range policy.Statuses() {
			if s.String() == d.Status {
				return s.CommandRemedy(id.Server, id.String())
			}
		}
	case policy.CheckHints:
		return "Hints are corrected with hint_overrides: `mcpproxy upstream set " + id.Server + " hint_overrides`, see `mcpproxy help upstream set`."
	case policy.CheckLane:
		return "Call it in the lane of its arguments. The key `lanes` of '" + id.Server + "' in mcp_config.json sets the deciding argument."
	case policy.CheckSchema, policy.CheckArguments:
		return "See its input schema with `mcpproxy tools show " + id.String() + "`."
	case policy.CheckExists:
		return "See the server with `mcpproxy upstream get " + id.Server + "`."
	}
	return ""
}

// explainedCaller is the caller of the explained call, with the token, scope and client rules that apply to it.
type explainedCaller struct {
	ProspectWho
	caller auth.Caller
	token  *auth.LoadedToken
	report *permission.Report
	// surface is the surface that a client uses.
	surface clients.Surface
	notes   []string
}

// findCaller finds a client, profile or token by name.
func (p *Explainer) findCaller(ctx context.Context, word string) (explainedCaller, error) {
	kind, name, said := strings.Cut(word, ":")
	if !said || kind != "client" && kind != "profile" && kind != "agent" {
		kind, name = "", word
	}
	client, clientErr := clients.FindClient(name)
	profile := p.Gateway.Config().Profile(name) != nil
	token, tokens, err := p.Tokens.LookupByName(ctx, name)
	if err != nil {
		return explainedCaller{}, problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
	}
	switch {
	case profile && (kind == "" || kind == "profile"):
		return p.withCallerScope(explainedCaller{ProspectWho: ProspectWho{Kind: "profile", Name: name}}, name), nil
	case clientErr == nil && (kind == "" || kind == "client"):
		return p.callerForClient(ctx, client)
	case token != nil && (kind == "" || kind == "agent"):
		return p.withCallerScope(explainedCaller{ProspectWho: ProspectWho{Kind: "agent", Name: name}, token: token}, ""), nil
	}
	names := slices.Concat(clients.ClientIDs(), profileNames(p.Gateway.Config()), mapSlice(tokens, func(name string) string { return "agent:" + name }))
	hint := "Give a client (" + strings.Join(clients.ClientIDs()[:3], ", ") + ", …), a profile (`mcpproxy profile list`) or a token as agent:NAME (`mcpproxy token list`)."
	if near := search.ClosestName(word, names); near != "" {
		hint = "Did you mean '" + near + "'? " + hint
	}
	return explainedCaller{}, problem.Newf(problem.NotFound, "No client, profile or token is called '%s'.", problem.ClipName(word)).WithHint(hint).With("parameter", "who")
}

// withCallerScope sets the caller's scope for the address of a profile. The profile "" means none.
func (p *Explainer) withCallerScope(w explainedCaller, profile string) explainedCaller {
	w.caller = auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: auth.MCP}
	if w.token != nil {
		w.Token = w.token.Name
		w.caller.Actor.Name, w.caller.Actor.ID = w.token.Name, w.token.ID
		if w.token.HasEnded() {
			w.notes = append(w.notes, "The token '"+w.Token+"' has expired: it permits nothing.")
		}
	}
	w.caller.Bounds = auth.NewCallerBounds(w.token, profile, func(name string) *auth.ScopeRule { return p.Gateway.Config().ProfileRule(name) })
	w.Profiles = w.caller.Scope().ProfileNames()
	return w
}

// callerForClient returns the caller for a client, according to the connection in its files.
func (p *Explainer) callerForClient(ctx context.Context, c clients.Client) (explainedCaller, error) {
	env := p.Account.Env
	report, err := permission.CheckClient(env, c.ID, p.Account.Tools())
	if err != nil {
		return explainedCaller{}, err
	}
	w := explainedCaller{ProspectWho: ProspectWho{Kind: "client", Name: c.ID}, report: &report, notes: report.Notes}
	var docs []clients.ClientDoc
	for _, f := range c.Files(env) {
		if d, there := f.Read(); there {
			docs = append(docs, d)
		}
	}
	at, connected := clients.FindProxyRegistration(docs, nil)
	if w.Connected = connected; !connected {
		return p.withCallerScope(w, ""), nil
	}
	use := clients.ParseProxyConnection(at.Entry)
	paths := mapSlice(at.Entries, func(e clients.ProxyEntry) string { return clients.ParseProxyConnection(e.Value).Path })
	w.Address, w.surface = strings.Join(paths, ", "), at.Surface
	if w.token, err = p.Tokens.LookupByText(ctx, use.Token); err != nil {
		return explainedCaller{}, err
	}
	switch {
	case use.Token != "" && w.token == nil:
		w.notes = append([]string{"The token in " + at.Doc.Path + " is not valid for this MCPProxy, which rejects the client. This is the result without a token."}, w.notes...)
	case use.Token == "" && use.HTTP && p.Gateway.Config().RequireMCPAuth:
		w.notes = append([]string{"MCPProxy requires a token from every client (require_mcp_auth), and there is none in " + at.Doc.Path + ": the client has access only if it has a token elsewhere."}, w.notes...)
	}
	return p.withCallerScope(w, use.Profile), nil
}

// clientVerdict describes how the client reacts to a call with this variant.
func (w *explainedCaller) clientVerdict(v policy.CallToolVariant) *ProspectClient {
	if w.surface == clients.SurfaceServer {
		return &ProspectClient{permission.Unknown, permission.Rule{Text: "the client uses " + w.Address}, "there the tool has its own name and is not called through the calling tools"}
	}
	for _, lane := range w.report.Lanes {
		if lane.Lane == v.Operation().String() {
			return &ProspectClient{lane.Verdict, lane.Rule, lane.Why}
		}
	}
	return &ProspectClient{Verdict: permission.Unknown, Rule: permission.Rule{Text: "no entry of the client has this lane"}}
}

// scopeRefusalReason describes the scope that rejects a call.
func (w *explainedCaller) scopeRefusalReason(id tool.ID, v policy.CallToolVariant, g *Gateway) string {
	if w.token != nil && w.token.HasEnded() {
		return "The token '" + w.Token + "' has expired."
	}
	type bound struct {
		of   string
		rule *auth.ScopeRule
	}
	var all []bound
	if w.token != nil {
		all = append(all, bound{"The token '" + w.Token + "'", w.token.RuleWithoutProfile()})
	}
	for _, name := range strings.Split(w.Profiles, ",") {
		rule := g.Config().ProfileRule(name)
		if rule == nil && name != "" {
			return "There is no profile '" + name + "'."
		}
		all = append(all, bound{"The profile '" + name + "'", rule})
	}
	t := g.Catalog.Current().Tool(id)
	for _, b := range all {
		within := auth.NewScope(b.rule)
		switch {
		case !within.AllowsServer(id.Server):
			return b.of + " does not have the server '" + id.Server + "'."
		case !within.AllowsTool(id.Server, id.Tool):
			return b.of + " does not have the tool."
		case t != nil && !policy.ScopeIncludes(within, t.OperationLane()):
			return b.of + " has the lanes " + strings.Join(within.Lanes().Words(), ", ") + ", and the tool counts as " + t.OperationLane().String() + "."
		case !policy.ScopeIncludes(within, v.Operation()):
			return b.of + " has the lanes " + strings.Join(within.Lanes().Words(), ", ") + ", and the lane of the call is " + v.Operation().String() + "."
		}
	}
	return "The call is outside the scope of the caller."
}
