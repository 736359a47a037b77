package ops

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
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
