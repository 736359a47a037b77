package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream"
)

// Proposal is a server that an agent proposed.
type Proposal struct {
	approval.AuthorAndTime
	Config  config.Server     // the configuration after its approval
	Edit    config.ServerEdit // the edit of the file after its approval
	Client  string            // name that the client reported
	Session string            // session that made the proposal; "" if unknown
}

// storedProposal is the stored form of a proposal.
type storedProposal struct {
	config.ServerEdit
	Client  string `json:"proposed_with,omitempty"`
	Session string `json:"proposed_in,omitempty"`
}

// encodeProposal returns the stored form of a proposal.
func encodeProposal(edit config.ServerEdit, client, session string) (json.RawMessage, error) {
	return json.Marshal(storedProposal{edit, client, session})
}

// decodeProposal decodes a stored proposal. It always sets the quarantine and clears the trust setting.
func decodeProposal(p approval.ServerProposal) (Proposal, error) {
	var kept storedProposal
	if err := json.Unmarshal(p.Server, &kept); err != nil {
		return Proposal{}, problem.Newf(problem.Internal, "The proposal of server '%s' cannot be read.", p.Name).
			WithHint("Remove it with `mcpproxy upstream remove " + p.Name + "`.").Because(err)
	}
	edit := kept.ServerEdit
	edit.Quarantined, edit.Trust, edit.Enabled = true, "", nil
	s := config.Server{Name: p.Name, Protocol: "stdio", Launch: edit.Launch, Enabled: true, Quarantined: true}
	if edit.URL != "" {
		s.Protocol = "http"
	}
	return Proposal{p.AuthorAndTime, s, edit, kept.Client, kept.Session}, nil
}

// MayProposeServers reports whether a caller may propose servers. Its scope must include the write lane and all
// servers, because an error about a taken name reveals servers.
func MayProposeServers(c *Caller) bool {
	within := c.Scope()
	return within.AllowsAllServers() && policy.ScopeIncludes(within, policy.Write)
}

// Proposals returns the proposed servers, except those whose names are already configured.
func (g *Gateway) Proposals() []Proposal {
	var all []Proposal
	for _, p := range g.Book.ProposedServers() {
		if g.Config().Server(p.Name) != nil {
			continue
		}
		one, err := decodeProposal(p)
		if err != nil {
			g.Logger.Error("a proposed server cannot be read", "server", p.Name, "error", err)
			continue
		}
		all = append(all, one)
	}
	return all
}

// serverView returns the view of a proposed server.
func (p *Proposal) serverView() ServerView {
	v := unstartedServerView(p.Config)
	v.Stage, v.ProposedBy = StageLaunch, p.By
	return v
}

// unstartedServerView returns the view of a server from its configuration alone.
func unstartedServerView(s config.Server) ServerView {
	shown := s.MaskedLaunch()
	return ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined, State: string(upstream.Stopped),
		Command: shown.Command, Args: shown.Args, URL: shown.URL,
	}
}

// onlyProposedError returns the error for an operation on a proposal that requires a configured server.
func onlyProposedError(name string) error {
	return problem.Newf(problem.Conflict, "Server '%s' is only proposed: it waits for review.", name).
		WithHint("Review it with `mcpproxy upstream approve " + name + "`, or remove it with `mcpproxy upstream remove " + name + "`.")
}

// maxProposalsEach limits the number of pending proposals per client. approval.MaxProposals limits those of all
// clients.
const maxProposalsEach = 10

// addProposal stores a server that an agent proposes. The proposal cannot set trust or skip the quarantine.
func (a *Admin) addProposal(ctx context.Context, name string, edit config.ServerEdit, c Caller) error {
	if a.Config().MCPManagement != config.ManagePropose {
		return problem.New(problem.Forbidden, "Agents are not allowed to propose servers.", "Ask the user to add the server.")
	}
	by, client := c.Actor.String(), redact.Text(problem.ClipName(c.ClientName))
	fits := func(others []approval.ServerProposal) error { return a.checkProposal(name, by, client, others) }
	if err := fits(a.Book.ProposedServers()); err != nil {
		return err // nothing has changed; the caller records the error
	}
	edit.Trust, edit.Quarantined, edit.Enabled = "", true, nil
	text, err := encodeProposal(edit, client, problem.ClipName(c.SessionID))
	if err != nil {
		return err
	}
	a.withdrawMatching(ctx, func(other string) bool { return a.Config().Server(other) != nil }, "it was added to the configuration in the meantime", c)
	if len(a.Book.ProposedServers()) >= approval.MaxProposals {
		return approval.TooManyProposalsProblem()
	}
	r := newActionRecord(c, activity.ConfigChange, tool.ID{Server: name}, "propose_server", "")
	return a.runAndRecord(r, func() error { return a.Book.ProposeServer(ctx, name, text, by, fits) })
}

// checkProposal rejects a name that looks like another name, and a proposal above the limit of its client.
func (a *Admin) checkProposal(name, by, client string, others []approval.ServerProposal) error {
	if like := a.findLookalike(name, others); like != "" {
		return problem.New(problem.Conflict, lookalikeMessage(name, like)+".", "").
			WithHint("Choose a name that cannot be confused with another.").With("parameter", "name").With("looks_like", like)
	}
	own := 0
	for _, other := range others {
		kept, err := decodeProposal(other)
		if err == nil && other.By == by && kept.Client == client && a.Config().Server(other.Name) == nil {
			own++
		}
	}
	if own >= maxProposalsEach {
		return problem.Newf(problem.Overloaded, "%d servers proposed by this client already wait for approval.", maxProposalsEach).
			WithHint("Ask the user to review them with `mcpproxy approvals`.")
	}
	return nil
}

func lookalikeMessage(name, like string) string {
	if name == like {
		return "The name '" + name + "' is one of MCPProxy's own"
	}
	return "The name '" + name + "' looks like '" + like + "'"
}

// findLookalike returns the name of the server, proposal or built-in tool that looks like the given name, or "" if
// there is none.
func (a *Admin) findLookalike(name string, proposed []approval.ServerProposal) string {
	skeleton := tool.ConfusableSkeleton(name)
	like := func(other string) bool { return other != name && tool.ConfusableSkeleton(other) == skeleton }
	for _, s := range a.Config().Servers {
		if like(s.Name) {
			return s.Name
		}
	}
	for _, other := range proposed {
		if like(other.Name) {
			return other.Name
		}
	}
	for _, own := range []string{"mcpproxy", "retrieve_tools", "call_tool", "call_tool_read", "call_tool_write", "call_tool_destructive",
		"read_result", "upstream_servers"} {
		if tool.ConfusableSkeleton(own) == skeleton {
			return own
		}
	}
	return ""
}

// withdrawSuperseded withdraws the proposals whose names are equal or similar to the name of a server that a user has
// added. It adds warnings to v.
func (a *Admin) withdrawSuperseded(ctx context.Context, v *ServerView, c Caller) {
	skeleton := tool.ConfusableSkeleton(v.Name)
	for _, name := range a.withdrawMatching(ctx, func(other string) bool { return tool.ConfusableSkeleton(other) == skeleton }, "the user added '"+v.Name+"'", c) {
		v.Warnings = append(v.Warnings, "The proposal of an agent for a server named '"+name+"' was withdrawn, because you added this server.")
	}
	if like := a.findLookalike(v.Name, nil); like != "" {
		v.Warnings = append(v.Warnings, lookalikeMessage(v.Name, like)+": the two can be confused.")
	}
}

// withdrawMatching withdraws the proposals whose names match and returns the names. It records each withdrawal with the
// reason.
func (a *Admin) withdrawMatching(ctx context.Context, goes func(name string) bool, why string, c Caller) (dropped []string) {
	for _, one := range a.Book.ProposedServers() {
		if !goes(one.Name) {
			continue
		}
		r := newActionRecord(c, activity.ConfigChange, tool.ID{Server: one.Name}, "drop_proposal", why)
		if err := a.runAndRecord(r, func() error { return a.Book.WithdrawProposal(ctx, one.Name) }); err != nil {
			a.Logger.Error("a proposal could not be dropped", "server", one.Name, "error", err)
			continue
		}
		dropped = append(dropped, one.Name)
	}
	return dropped
}

// checkNameFree rejects the name of an existing server, ignoring case. For agents, it also rejects the name of a
// proposal. A server that a user adds replaces a proposal.
func (a *Admin) checkNameFree(name string, c Caller) error {
	if !c.IsUser() && slices.ContainsFunc(a.Book.ProposedServers(), func(other approval.ServerProposal) bool { return strings.EqualFold(other.Name, name) }) {
		return nameTakenError(name)
	}
	return checkNameNotConfigured(name, a.Config())
}

func checkNameNotConfigured(name string, c *config.Config) error {
	if slices.ContainsFunc(c.Servers, func(s config.Server) bool { return strings.EqualFold(s.Name, name) }) {
		return nameTakenError(name)
	}
	return nil
}

func nameTakenError(name string) error {
	return problem.Newf(problem.Conflict, "A server named '%s' already exists.", name).
		WithHint("Choose another name, or remove that server first.")
}
