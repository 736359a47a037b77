package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// maxProposalsEach is how many proposals of one client wait, of the
// approval.MaxProposals of all.
const maxProposalsEach = 10

// proposal is what is kept of a server that an agent proposes.
type proposal struct {
	config.ServerEdit
	// Client is the name of the client that proposed it, as it calls itself: what
	// agents without a token can be told apart by.
	Client string `json:"proposed_with,omitempty"`
}

// propose keeps what an agent wants to have. It says neither how far its server
// is trusted nor that it needs no review.
func (g *Gateway) propose(ctx context.Context, name string, edit config.ServerEdit, c Caller) error {
	if g.Config().MCPManagement != config.ManagePropose {
		return problem.New(problem.Forbidden, "Agents may not propose servers here.", "Ask the user to add the server.")
	}
	by, client := c.Actor.String(), redact.Text(clip(c.ClientName))
	fits := func(others []approval.Proposal) error { return g.proposalFits(name, by, client, others) }
	if err := fits(g.Book.Proposals()); err != nil {
		return err // which changes nothing: the surface records it
	}
	edit.Trust, edit.Quarantined, edit.Enabled = "", true, nil
	text, err := json.Marshal(proposal{edit, client})
	if err != nil {
		return err
	}
	g.dropProposals(ctx, func(p string) bool { return g.Config().Server(p) != nil }, "it is in the configuration by now", c)
	if len(g.Book.Proposals()) >= approval.MaxProposals {
		return approval.TooManyProposals()
	}
	r := about(c, activity.ConfigChange, tool.ID{Server: name}, "propose_server", "")
	return g.recorded(&r, func() error { return g.Book.Propose(ctx, name, text, by, fits) })
}

// proposalFits refuses a proposal whose name somebody may take for another one,
// and one more of a client that has proposed much already.
func (g *Gateway) proposalFits(name, by, client string, others []approval.Proposal) error {
	if like := g.looksLike(name, others); like != "" {
		return problem.New(problem.Conflict, alike(name, like)+".", "").
			WithHint("Choose a name that nobody can take for another one.").With("parameter", "name").With("looks_like", like)
	}
	own := 0
	for _, p := range others {
		var edit proposal
		if json.Unmarshal(p.Server, &edit) == nil && p.By == by && edit.Client == client && g.Config().Server(p.Name) == nil {
			own++
		}
	}
	if own >= maxProposalsEach {
		return problem.Newf(problem.Overloaded, "%d servers that this client has proposed wait for a person already.", maxProposalsEach).
			WithHint("Ask the user to look at them with `mcpproxy approvals`.")
	}
	return nil
}

func alike(name, like string) string {
	if name == like {
		return "The name '" + name + "' is one of MCPProxy's own"
	}
	return "The name '" + name + "' looks like '" + like + "'"
}

// looksLike returns the name that another one may be taken for: that of a server,
// of one of the proposals, or one of our own; "" when there is none.
func (g *Gateway) looksLike(name string, proposals []approval.Proposal) string {
	skeleton := tool.Skeleton(name)
	like := func(other string) bool { return other != name && tool.Skeleton(other) == skeleton }
	for _, s := range g.Config().Servers {
		if like(s.Name) {
			return s.Name
		}
	}
	for _, p := range proposals {
		if like(p.Name) {
			return p.Name
		}
	}
	for _, own := range []string{"mcpproxy", "retrieve_tools", "call_tool", "call_tool_read", "call_tool_write", "call_tool_destructive",
		"read_result", "upstream_servers"} {
		if tool.Skeleton(own) == skeleton {
			return own
		}
	}
	return ""
}

// yield has proposals give way to a server that a person has added, and says so
// in v: those of the same name, and those whose name may be taken for it.
func (g *Gateway) yield(ctx context.Context, v *ServerView, c Caller) {
	skeleton := tool.Skeleton(v.Name)
	for _, name := range g.dropProposals(ctx, func(p string) bool { return tool.Skeleton(p) == skeleton }, "a person has added '"+v.Name+"'", c) {
		v.Warnings = append(v.Warnings, "An agent had proposed a server named '"+name+"', which is dropped: yours counts.")
	}
	if like := g.looksLike(v.Name, nil); like != "" {
		v.Warnings = append(v.Warnings, alike(v.Name, like)+": somebody may take the one for the other.")
	}
}

// dropProposals takes those proposals away whose names are to go, each on record
// with the reason, and gives their names.
func (g *Gateway) dropProposals(ctx context.Context, goes func(name string) bool, why string, c Caller) (dropped []string) {
	for _, p := range g.Book.Proposals() {
		if !goes(p.Name) {
			continue
		}
		r := about(c, activity.ConfigChange, tool.ID{Server: p.Name}, "drop_proposal", why)
		if err := g.recorded(&r, func() error { return g.Book.Withdraw(ctx, p.Name) }); err != nil {
			g.Logger.Error("a proposal could not be dropped", "server", p.Name, "error", err)
			continue
		}
		dropped = append(dropped, p.Name)
	}
	return dropped
}

// nameIsFree refuses a name that a server has, in whatever case; to an agent also
// one that is proposed. A person's server goes before a proposal.
func (g *Gateway) nameIsFree(name string, c Caller) error {
	taken := false
	for _, s := range g.Config().Servers {
		taken = taken || strings.EqualFold(s.Name, name)
	}
	for _, p := range g.Book.Proposals() {
		taken = taken || !c.Person() && strings.EqualFold(p.Name, name)
	}
	if taken {
		return problem.Newf(problem.Conflict, "There is a server named '%s' already.", name).
			WithHint("Choose another name, or remove that server first.")
	}
	return nil
}

// readProposal is the server that is proposed, as it would stand in the file.
func readProposal(p approval.Proposal) (config.Server, config.ServerEdit, error) {
	var kept proposal
	if err := json.Unmarshal(p.Server, &kept); err != nil {
		return config.Server{}, kept.ServerEdit, problem.Newf(problem.Internal, "The proposal of server '%s' cannot be read.", p.Name).
			WithHint("Remove it with `mcpproxy upstream remove " + p.Name + "`.").Because(err)
	}
	edit := kept.ServerEdit
	edit.Quarantined, edit.Trust, edit.Enabled = true, "", nil
	s := config.Server{
		Name: p.Name, Protocol: "stdio", Launch: edit.Launch, Enabled: true, Quarantined: true,
	}
	if edit.URL != "" {
		s.Protocol = "http"
	}
	return s, edit, nil
}

// viewProposal is a proposed server among the others.
func (s *subject) viewProposal() ServerView {
	shown := s.config.ShownLaunch()
	return ServerView{
		Name: s.name, Protocol: s.config.Protocol, Enabled: true, Quarantined: true, Stage: StageLaunch,
		ProposedBy: s.proposal.By, State: string(upstream.Stopped),
		Command: shown.Command, Args: shown.Args, URL: shown.URL,
	}
}
