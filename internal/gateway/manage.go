package gateway

import (
	"context"
	"net/url"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// The bounds of a server that is added.
const (
	maxServerText  = 8 << 10  // bytes of one text
	maxServerParts = 256      // arguments, variables or headers
	maxServer      = 64 << 10 // bytes of all its texts
)

// AddServer adds a server: for a person to the configuration, for an agent to
// the proposals, from where only a person can take it further.
func (g *Gateway) AddServer(ctx context.Context, c Caller, s NewServer) (ServerView, error) {
	edit, err := s.edit()
	if err != nil {
		return ServerView{}, err
	}
	if err := g.nameIsFree(s.Name, c); err != nil {
		return ServerView{}, err
	}
	id := tool.ID{Server: s.Name}
	switch {
	case c.Person():
		err = g.act(c, about(c, activity.ConfigChange, id, "add_server", ""), func() error {
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
	v, err := g.Server(ctx, c, ServerRef{s.Name})
	if err == nil && c.Person() {
		g.yield(ctx, &v, c)
	}
	return v, err
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
	edit := config.ServerEdit{
		Launch: s.Launch, Quarantined: s.Quarantined, Trust: config.Trust(s.Trust),
	}
	return edit, edit.Check()
}

// bounded reports whether a bound is broken.
func (s NewServer) bounded() bool {
	texts := append([]string{s.Command, s.URL, s.WorkingDir, s.Trust}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for name, value := range m {
			texts = append(texts, name, value)
		}
	}
	size := 0
	for _, text := range texts {
		if size += len(text); size > maxServer || len(text) > maxServerText {
			return true
		}
	}
	return len(s.Args) > maxServerParts || len(s.Env) > maxServerParts || len(s.Headers) > maxServerParts
}

func badServer(parameter, message string) error {
	return problem.New(problem.InvalidParameter, message, "Change it and try again.").With("parameter", parameter)
}

// RemoveServer takes a server out of the configuration, or a proposal away, and
// forgets what was decided about it.
func (g *Gateway) RemoveServer(ctx context.Context, c Caller, in ServerRef) (Removed, error) {
	name := in.Name
	return Removed{name}, g.act(c, about(c, activity.ConfigChange, tool.ID{Server: name}, "remove_server", ""), func() error {
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
		return g.Book.Forget(ctx, name)
	})
}
