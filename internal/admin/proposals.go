package admin

import (
	"context"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/tool"
)

// maxProposalsEach is how many proposals of one client wait, of the
// approval.MaxProposals of all.
const maxProposalsEach = 10

// propose keeps what an agent wants to have. It says neither how far its server
// is trusted nor that it needs no review.
func (a *Admin) propose(ctx context.Context, name string, edit config.ServerEdit, c Caller) error {
	if a.Config().MCPManagement != config.ManagePropose {
		return problem.New(problem.Forbidden, "Agents may not propose servers here.", "Ask the user to add the server.")
	}
	by, client := c.Actor.String(), redact.Text(problem.Brief(c.ClientName))
	fits := func(others []approval.Proposal) error { return a.proposalFits(name, by, client, others) }
	if err := fits(a.Book.Proposals()); err != nil {
		return err // which changes nothing: the surface records it
	}
	edit.Trust, edit.Quarantined, edit.Enabled = "", true, nil
	text, err := gateway.KeptProposal(edit, client)
	if err != nil {
		return err
	}
	a.dropProposals(ctx, func(p string) bool { return a.Config().Server(p) != nil }, "it is in the configuration by now", c)
	if len(a.Book.Proposals()) >= approval.MaxProposals {
		return approval.TooManyProposals()
	}
	r := gateway.Action(c, activity.ConfigChange, tool.ID{Server: name}, "propose_server", "")
	return a.recorded(r, func() error { return a.Book.Propose(ctx, name, text, by, fits) })
}

// proposalFits refuses a proposal whose name somebody may take for another one,
// and one more of a client that has proposed much already.
func (a *Admin) proposalFits(name, by, client string, others []approval.Proposal) error {
	if like := a.looksLike(name, others); like != "" {
		return problem.New(problem.Conflict, alike(name, like)+".", "").
			WithHint("Choose a name that nobody can take for another one.").With("parameter", "name").With("looks_like", like)
	}
	own := 0
	for _, p := range others {
		kept, err := gateway.ReadProposal(p)
		if err == nil && p.By == by && kept.Client == client && a.Config().Server(p.Name) == nil {
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
func (a *Admin) looksLike(name string, proposals []approval.Proposal) string {
	skeleton := tool.Skeleton(name)
	like := func(other string) bool { return other != name && tool.Skeleton(other) == skeleton }
	for _, s := range a.Config().Servers {
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
func (a *Admin) yield(ctx context.Context, v *gateway.ServerView, c Caller) {
	skeleton := tool.Skeleton(v.Name)
	for _, name := range a.dropProposals(ctx, func(p string) bool { return tool.Skeleton(p) == skeleton }, "a person has added '"+v.Name+"'", c) {
		v.Warnings = append(v.Warnings, "An agent had proposed a server named '"+name+"', which is dropped: yours counts.")
	}
	if like := a.looksLike(v.Name, nil); like != "" {
		v.Warnings = append(v.Warnings, alike(v.Name, like)+": somebody may take the one for the other.")
	}
}

// dropProposals takes those proposals away whose names are to go, each on record
// with the reason, and returns their names.
func (a *Admin) dropProposals(ctx context.Context, goes func(name string) bool, why string, c Caller) (dropped []string) {
	for _, p := range a.Book.Proposals() {
		if !goes(p.Name) {
			continue
		}
		r := gateway.Action(c, activity.ConfigChange, tool.ID{Server: p.Name}, "drop_proposal", why)
		if err := a.recorded(r, func() error { return a.Book.Withdraw(ctx, p.Name) }); err != nil {
			a.Logger.Error("a proposal could not be dropped", "server", p.Name, "error", err)
			continue
		}
		dropped = append(dropped, p.Name)
	}
	return dropped
}

// nameIsFree refuses a name that a server has, in whatever case; to an agent also
// one that is proposed. A person's server goes before a proposal.
func (a *Admin) nameIsFree(name string, c Caller) error {
	taken := false
	for _, s := range a.Config().Servers {
		taken = taken || strings.EqualFold(s.Name, name)
	}
	for _, p := range a.Book.Proposals() {
		taken = taken || !c.Person() && strings.EqualFold(p.Name, name)
	}
	if taken {
		return problem.Newf(problem.Conflict, "There is a server named '%s' already.", name).
			WithHint("Choose another name, or remove that server first.")
	}
	return nil
}
