package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// The bounds of a server that is added.
const (
	maxServerText  = 8 << 10  // bytes of one text
	maxServerParts = 256      // arguments, variables or headers
	maxServer      = 64 << 10 // bytes of all its texts
)

// AddServer adds a server: for a person to the configuration, for an agent to
// the proposals, from where only a person can take it further.
func (g *Gateway) AddServer(ctx context.Context, s NewServer, c Caller) (ServerView, error) {
	edit, err := s.edit()
	if err != nil {
		return ServerView{}, err
	}
	if err := g.nameIsFree(s.Name); err != nil {
		return ServerView{}, err
	}
	id := tool.ID{Server: s.Name}
	switch {
	case c.person():
		err = g.act(c, about(activity.ConfigChange, id, "add_server", ""), func() error {
			return g.Editor.AddServer(s.Name, edit)
		})
	case c.Actor.Kind == auth.Agent, c.Actor.Kind == auth.Admin:
		err = g.propose(ctx, s.Name, edit, c)
	default:
		err = problem.New(problem.Forbidden, "Nobody may add a server.", "")
	}
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, s.Name)
}

// propose keeps what an agent wants to have. It says neither how far its server
// is trusted nor that it needs no review.
func (g *Gateway) propose(ctx context.Context, name string, edit config.ServerEdit, c Caller) error {
	if g.Config().MCPManagement != config.ManagePropose {
		return problem.New(problem.Forbidden, "Agents may not propose servers here.", "Ask the user to add the server.")
	}
	edit.Trust, edit.Quarantined, edit.Enabled = "", true, nil
	text, err := json.Marshal(edit)
	if err != nil {
		return err
	}
	r := about(activity.ConfigChange, tool.ID{Server: name}, "propose_server", "")
	r.Source, r.Actor, r.SessionID, r.RequestID = c.Source, c.Actor.String(), c.SessionID, c.RequestID
	r.ClientName, r.ClientVersion = c.ClientName, c.ClientVersion
	return g.recorded(&r, func() error { return g.Book.Propose(ctx, name, text, c.Actor.String()) })
}

// edit checks a new server as far as its own texts go; the rest is checked when
// it is written into the file.
func (s NewServer) edit() (config.ServerEdit, error) {
	if err := tool.CheckServerName(s.Name); err != nil {
		return config.ServerEdit{}, badServer("name", "The name of the server cannot be used: "+err.Error()+".")
	}
	if (s.URL == "") == (s.Command == "") {
		return config.ServerEdit{}, badServer("command", "A server has either a command or a url.")
	}
	if u, err := url.Parse(s.URL); s.URL != "" && !strings.Contains(s.URL, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return config.ServerEdit{}, badServer("url", "The url must begin with http:// or https:// and name a host.")
	}
	if s.bounded() {
		return config.ServerEdit{}, badServer("args", "The server has more, or longer, texts than are allowed.")
	}
	return config.ServerEdit{
		Command: s.Command, Args: s.Args, Env: s.Env, WorkingDir: s.WorkingDir, URL: s.URL, Headers: s.Headers,
		Quarantined: s.Quarantined, Trust: config.Trust(s.Trust),
	}, nil
}

// bounded says whether a bound is broken.
func (s NewServer) bounded() bool {
	texts := append([]string{s.Command, s.URL, s.WorkingDir, s.Trust}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for name, value := range m {
			texts = append(texts, name, value)
		}
	}
	size := 0
	for _, text := range texts {
		if size += len(text); size > maxServer || len(text) > maxServerText || strings.ContainsRune(text, 0) {
			return true
		}
	}
	return len(s.Args) > maxServerParts || len(s.Env) > maxServerParts || len(s.Headers) > maxServerParts
}

func badServer(parameter, message string) error {
	return problem.New(problem.InvalidParameter, message, "Change it and try again.").With("parameter", parameter)
}

// nameIsFree refuses a name that a server has or that is proposed, in whatever
// case.
func (g *Gateway) nameIsFree(name string) error {
	taken := false
	for _, s := range g.Config().Servers {
		taken = taken || strings.EqualFold(s.Name, name)
	}
	for _, p := range g.Book.Proposals() {
		taken = taken || strings.EqualFold(p.Name, name)
	}
	if taken {
		return problem.Newf(problem.Conflict, "There is a server named '%s' already.", name).
			WithHint("Choose another name, or remove that server first.")
	}
	return nil
}

// readProposal is the server that is proposed, as it would stand in the file.
func readProposal(p approval.Proposal) (config.Server, config.ServerEdit, error) {
	var edit config.ServerEdit
	if err := json.Unmarshal(p.Server, &edit); err != nil {
		return config.Server{}, edit, problem.Newf(problem.Internal, "The proposal of server '%s' cannot be read.", p.Name).
			WithHint("Remove it with `mcpproxy upstream remove " + p.Name + "`.").Because(err)
	}
	edit.Quarantined, edit.Trust, edit.Enabled = true, "", nil
	s := config.Server{
		Name: p.Name, Protocol: "stdio", Command: edit.Command, Args: edit.Args, Env: edit.Env,
		WorkingDir: edit.WorkingDir, URL: edit.URL, Headers: edit.Headers, Enabled: true, Quarantined: true,
	}
	if edit.URL != "" {
		s.Protocol = "http"
	}
	return s, edit, nil
}

// viewProposal is a proposed server among the others.
func (s *subject) viewProposal() ServerView {
	shown := s.config.Launch()
	return ServerView{
		Name: s.name, Protocol: s.config.Protocol, Enabled: true, Quarantined: true, Stage: StageLaunch,
		ProposedBy: s.proposal.By, State: string(upstream.Stopped),
		Command: shown.Command, Args: shown.Args, URL: shown.URL,
	}
}

// RemoveServer takes a server out of the configuration, or a proposal away, and
// forgets what was decided about it.
func (g *Gateway) RemoveServer(ctx context.Context, name string, c Caller) error {
	return g.act(c, about(activity.ConfigChange, tool.ID{Server: name}, "remove_server", ""), func() error {
		s, err := g.subject(name)
		if err != nil {
			return err
		}
		if s.proposal == nil {
			login := g.login(name)
			if err := g.Editor.RemoveServer(name); err != nil {
				return err
			}
			g.forgetLogin(ctx, name, login)
		}
		if err := g.Book.Forget(ctx, name); err != nil {
			return err
		}
		g.Catalog.Refresh()
		return nil
	})
}

// EnableServer enables or disables a server in the configuration.
func (g *Gateway) EnableServer(ctx context.Context, name string, on bool, c Caller) (ServerView, error) {
	action, value := "disable", json.RawMessage("false")
	if on {
		action, value = "enable", json.RawMessage("true")
	}
	err := g.act(c, about(activity.ServerChange, tool.ID{Server: name}, action, ""), func() error {
		s, err := g.subject(name)
		if err != nil {
			return err
		}
		if err := s.notProposed(); err != nil {
			return err
		}
		return g.Editor.SetServer(name, "enabled", value)
	})
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, name)
}
