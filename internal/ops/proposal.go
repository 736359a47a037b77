package ops

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// Proposal is a server that an agent proposes: it is reviewed before it is in
// the configuration.
type Proposal struct {
	approval.Mark
	Config  config.Server     // as it would be
	Edit    config.ServerEdit // as it would be written
	Client  string            // how the client calls itself that proposed it
	Session string            // the session that it was proposed in, "" when that is not known
}

// proposal is what is kept of one.
type proposal struct {
	config.ServerEdit
	Client  string `json:"proposed_with,omitempty"`
	Session string `json:"proposed_in,omitempty"`
}

// keptProposal returns what is kept of a proposal.
func keptProposal(edit config.ServerEdit, client, session string) (json.RawMessage, error) {
	return json.Marshal(proposal{edit, client, session})
}

// readProposal reads what is kept. Whatever stands there, the server is
// quarantined and no trust is put in it.
func readProposal(p approval.Proposal) (Proposal, error) {
	var kept proposal
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
	return Proposal{p.Mark, s, edit, kept.Client, kept.Session}, nil
}

// MayPropose reports whether a caller with its bounds may propose a server: what is
// said of a name that is taken tells of servers, so that all of them must be in its
// scope, and the write lane.
func MayPropose(c *Caller) bool {
	within := c.Scope()
	return within.AllServers() && policy.Within(within, policy.Write)
}

// Proposals returns the proposed servers whose name is not taken meanwhile.
func (g *Gateway) Proposals() []Proposal {
	var all []Proposal
	for _, p := range g.Book.Proposals() {
		if g.Config().Server(p.Name) != nil {
			continue
		}
		one, err := readProposal(p)
		if err != nil {
			g.Logger.Error("a proposed server cannot be read", "server", p.Name, "error", err)
			continue
		}
		all = append(all, one)
	}
	return all
}

// view is a proposed server among the others.
func (p *Proposal) view() ServerView {
	v := unstarted(p.Config)
	v.Stage, v.ProposedBy = StageLaunch, p.By
	return v
}

// unstarted is a server of which nothing but its configuration is known.
func unstarted(s config.Server) ServerView {
	shown := s.ShownLaunch()
	return ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined, State: string(upstream.Stopped),
		Command: shown.Command, Args: shown.Args, URL: shown.URL,
	}
}

// onlyProposed refuses what only a server of the configuration has.
func onlyProposed(name string) error {
	return problem.Newf(problem.Conflict, "Server '%s' is only proposed: it waits for review.", name).
		WithHint("Review it with `mcpproxy upstream approve " + name + "`, or take it away with `mcpproxy upstream remove " + name + "`.")
}
