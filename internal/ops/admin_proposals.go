package ops

import (
	"context"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
)

// maxProposalsEach is how many proposals of one client wait, of the
// approval.MaxProposals of all.
const maxProposalsEach = 10

// proposals are the servers that agents want to have.
type proposals struct {
	journal
	book   *approval.Book
	config func() *config.Config
}

// propose keeps what an agent wants to have. It says neither how far its server
// is trusted nor that it needs no review.
func (p proposals) propose(ctx context.Context, name string, edit config.ServerEdit, c Caller) error {
	if p.config().MCPManagement != config.ManagePropose {
		return problem.New(problem.Forbidden, "Agents may not propose servers here.", "Ask the user to add the server.")
	}
	by, client := c.Actor.String(), redact.Text(problem.Brief(c.ClientName))
	fits := func(others []approval.Proposal) error { return p.fit(name, by, client, others) }
	if err := fits(p.book.Proposals()); err != nil {
		return err // which changes nothing: the surface records it
	}
	edit.Trust, edit.Quarantined, edit.Enabled = "", true, nil
	text, err := keptProposal(edit, client, problem.Brief(c.SessionID))
	if err != nil {
		return err
	}
	p.drop(ctx, func(other string) bool { return p.config().Server(other) != nil }, "it is in the configuration by now", c)
	if len(p.book.Proposals()) >= approval.MaxProposals {
		return approval.TooManyProposals()
	}
	r := Action(c, activity.ConfigChange, tool.ID{Server: name}, "propose_server", "")
	return p.recorded(r, func() error { return p.book.Propose(ctx, name, text, by, fits) })
}

// fit refuses a proposal whose name somebody may take for another one,
// and one more of a client that has proposed much already.
func (p proposals) fit(name, by, client string, others []approval.Proposal) error {
	if like := p.looksLike(name, others); like != "" {
		return problem.New(problem.Conflict, alike(name, like)+".", "").
			WithHint("Choose a name that nobody can take for another one.").With("parameter", "name").With("looks_like", like)
	}
	own := 0
	for _, other := range others {
		kept, err := readProposal(other)
		if err == nil && other.By == by && kept.Client == client && p.config().Server(other.Name) == nil {
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
func (p proposals) looksLike(name string, proposed []approval.Proposal) string {
	skeleton := tool.ConfusableSkeleton(name)
	like := func(other string) bool { return other != name && tool.ConfusableSkeleton(other) == skeleton }
	for _, s := range p.config().Servers {
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

// yield has proposals give way to a server that a person has added, and says so
// in v: those of the same name, and those whose name may be taken for it.
func (p proposals) yield(ctx context.Context, v *ServerView, c Caller) {
	skeleton := tool.ConfusableSkeleton(v.Name)
	for _, name := range p.drop(ctx, func(other string) bool { return tool.ConfusableSkeleton(other) == skeleton }, "a person has added '"+v.Name+"'", c) {
		v.Warnings = append(v.Warnings, "An agent had proposed a server named '"+name+"', which is dropped: yours counts.")
	}
	if like := p.looksLike(v.Name, nil); like != "" {
		v.Warnings = append(v.Warnings, alike(v.Name, like)+": somebody may take the one for the other.")
	}
}

// drop takes those proposals away whose names are to go, each on record
// with the reason, and returns their names.
func (p proposals) drop(ctx context.Context, goes func(name string) bool, why string, c Caller) (dropped []string) {
	for _, one := range p.book.Proposals() {
		if !goes(one.Name) {
			continue
		}
		r := Action(c, activity.ConfigChange, tool.ID{Server: one.Name}, "drop_proposal", why)
		if err := p.recorded(r, func() error { return p.book.Withdraw(ctx, one.Name) }); err != nil {
			p.logger.Error("a proposal could not be dropped", "server", one.Name, "error", err)
			continue
		}
		dropped = append(dropped, one.Name)
	}
	return dropped
}

// nameIsFree refuses a name that a server has, in whatever case; to an agent also
// one that is proposed. A person's server goes before a proposal.
func (p proposals) nameIsFree(name string, c Caller) error {
	if !c.Person() && slices.ContainsFunc(p.book.Proposals(), func(other approval.Proposal) bool { return strings.EqualFold(other.Name, name) }) {
		return nameIsTaken(name)
	}
	return nameIsFree(name, p.config())
}

func nameIsFree(name string, c *config.Config) error {
	if slices.ContainsFunc(c.Servers, func(s config.Server) bool { return strings.EqualFold(s.Name, name) }) {
		return nameIsTaken(name)
	}
	return nil
}

func nameIsTaken(name string) error {
	return problem.Newf(problem.Conflict, "There is a server named '%s' already.", name).
		WithHint("Choose another name, or remove that server first.")
}
