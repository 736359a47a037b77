package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// AddServer adds a server: for a person to the configuration, for an agent to
// the proposals, from where only a person can take it further.
func (a *Admin) AddServer(ctx context.Context, c Caller, s NewServer) (ServerView, error) {
	if c.Known() && !MayPropose(&c) {
		return ServerView{}, problem.New(problem.OutOfScope, "To propose a server is outside what this client may do: it needs all servers and the write lane.",
			"Ask the user to add the server.")
	}
	edit, err := check(s)
	if err != nil {
		return ServerView{}, err
	}
	if err := a.proposals.nameIsFree(s.Name, c); err != nil {
		return ServerView{}, err
	}
	switch {
	case c.Person():
		err = a.act(c, Action(c, activity.ConfigChange, tool.ID{Server: s.Name}, "add_server", ""), func() error {
			return a.editor.AddServers(a.Permit(ctx), config.NamedEdit{Name: s.Name, ServerEdit: edit})
		})
	case c.Known():
		if err = a.editor.CheckNotSelf(edit.Launch); err == nil {
			err = a.proposals.propose(ctx, s.Name, edit, c)
		}
	default:
		err = problem.New(problem.Forbidden, "Nobody may add a server.", "")
	}
	v, err := a.after(ctx, c, ServerRef{Name: s.Name}, err)
	if err == nil && c.Person() {
		a.proposals.yield(ctx, &v, c)
	}
	return v, err
}

// AddServers adds several servers for a person, who permits them at once where presence asks
// for it: a proof is for one text of the file. What is wrong with one of them is in its place
// of refused, and keeps no other from being added; with err none was.
func (a *Admin) AddServers(ctx context.Context, c Caller, all []NewServer) (views []ServerView, refused []error, err error) {
	if err := together(len(all), "servers", "added", "servers"); err != nil {
		return nil, nil, err
	}
	views, refused = make([]ServerView, len(all)), make([]error, len(all))
	if c.Person() {
		if refused, err = addTogether(ctx, a, c, all); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range all {
		switch {
		case refused[i] != nil:
		case !c.Person():
			views[i], refused[i] = a.AddServer(ctx, c, s)
		default:
			if views[i], refused[i] = a.Server(ctx, c, ServerRef{Name: s.Name}); refused[i] == nil {
				a.proposals.yield(ctx, &views[i], c)
			}
		}
	}
	return views, refused, nil
}

// addTogether adds in one edit those with which nothing is wrong. What does not fit into the
// file is on record, as is what is added.
func addTogether(ctx context.Context, a *Admin, c Caller, all []NewServer) (refused []error, err error) {
	var sound []config.NamedEdit
	var at []int // in all
	refused = make([]error, len(all))
	recorded := func(name string, do func() error) error {
		return a.act(c, Action(c, activity.ConfigChange, tool.ID{Server: name}, "add_server", ""), do)
	}
	for i, s := range all {
		one := config.NamedEdit{Name: s.Name}
		if one.ServerEdit, err = check(s); err == nil {
			err = a.proposals.nameIsFree(s.Name, c)
		}
		if refused[i] = err; err == nil {
			sound, at = append(sound, one), append(at, i)
		}
	}
	var fit []config.NamedEdit
	for n, unfit := range unfitOf(a.editor, sound) {
		if unfit == nil {
			fit = append(fit, sound[n])
		} else {
			refused[at[n]] = recorded(sound[n].Name, func() error { return unfit })
		}
	}
	if len(fit) == 0 {
		return refused, nil
	}
	add := func() error { return a.editor.AddServers(a.Permit(ctx), fit...) }
	for _, one := range fit { // each is on record
		next := add
		add = func() error { return recorded(one.Name, next) }
	}
	return refused, add()
}

// unfitOf returns what is wrong with each. It looks for them by halves, since each look reads
// the whole file.
func unfitOf(e Editor, all []config.NamedEdit) []error {
	if len(all) == 0 {
		return nil
	}
	err := e.CheckNewServers(all...)
	if len(all) == 1 {
		return []error{err}
	}
	if err == nil {
		return make([]error, len(all))
	}
	half := len(all) / 2
	return append(unfitOf(e, all[:half]), unfitOf(e, all[half:])...)
}

// isProposed reports whether a name is that of a proposal, and not of a server of
// the configuration.
func (a *Admin) isProposed(name string) (bool, error) {
	if a.Config().Server(name) != nil {
		return false, nil
	}
	if _, proposed := a.Book.Proposal(name); proposed {
		return true, nil
	}
	return false, a.NoServer(name)
}

// RemoveServer takes a server out of the configuration, or a proposal away, and
// forgets what was decided about it.
func (a *Admin) RemoveServer(ctx context.Context, c Caller, in ServerRef) (Removed, error) {
	name := in.Name
	return Removed{Removed: name}, a.act(c, Action(c, activity.ConfigChange, tool.ID{Server: name}, "remove_server", ""), func() error {
		proposed, err := a.isProposed(name)
		if err == nil && !proposed {
			err = a.WithoutLogin(ctx, name, func() error { return a.editor.RemoveServer(name) })
		}
		if err == nil {
			err = a.Book.Forget(ctx, name)
		}
		return err
	})
}

// EnableServer enables a server in the configuration.
func (a *Admin) EnableServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	return a.ChangeServer(ctx, c, ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("true")})
}

// DisableServer disables a server in the configuration.
func (a *Admin) DisableServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	return a.ChangeServer(ctx, c, ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("false")})
}

// ChangeServer sets one key of a server in the configuration, or takes it out.
// That it is enabled or not, and that it is quarantined, is on record under the
// names of the operations that do only that.
func (a *Admin) ChangeServer(ctx context.Context, c Caller, in ServerChange) (ServerView, error) {
	kind, action, detail := activity.ConfigChange, "set_"+problem.Brief(in.Key), changeOf(in)
	allowed := slices.Contains(ChangeableKeys(), in.Key)
	switch in.Key + " " + detail {
	case "quarantined true":
		return a.QuarantineServer(ctx, c, in.ServerRef)
	case "enabled true":
		kind, action, detail, allowed = activity.ServerChange, "enable", "", true
	case "enabled false":
		kind, action, detail, allowed = activity.ServerChange, "disable", "", true
	}
	err := a.act(c, Action(c, kind, tool.ID{Server: in.Name}, action, detail), func() error {
		if !allowed {
			return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed like this.", problem.Brief(in.Key)).
				WithHint("The keys are "+strings.Join(ChangeableKeys(), ", ")+"; edit mcp_config.json for the others.").With("parameter", "key").With("allowed", ChangeableKeys())
		}
		switch proposed, err := a.isProposed(in.Name); {
		case err != nil:
			return err
		case proposed:
			return onlyProposed(in.Name)
		}
		return a.editor.SetServer(a.Permit(ctx), in.Name, in.Key, in.Value)
	})
	return a.after(ctx, c, in.ServerRef, err)
}

func notChangeable(key string) error {
	return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed like this.", problem.Brief(key)).
		WithHint("Edit mcp_config.json.").With("parameter", "key").With("allowed", ChangeableKeys())
}

// changeOf is a change as it is on record. How a server is launched may hold
// secrets: of variables and headers it has the names, of the rest nothing.
func changeOf(in ServerChange) string {
	if in.Value == nil {
		return "taken out"
	}
	switch in.Key {
	case "env", "headers":
		var names []string
		_ = wirejson.Members(in.Value, func(name, value []byte) error {
			if wirejson.Kind(value) == 'n' {
				name = append(name, " taken out"...)
			}
			names = append(names, string(name))
			return nil
		})
		return problem.Brief(strings.Join(names, ", "))
	case "command", "url":
		return ""
	}
	return problem.Brief(string(in.Value))
}
