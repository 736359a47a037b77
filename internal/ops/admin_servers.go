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

// AddServer adds a server. A user's server is added to the configuration. An agent's server becomes a proposal, which
// only a user can approve.
func (a *Admin) AddServer(ctx context.Context, c Caller, s AddServerRequest) (ServerView, error) {
	if c.IsKnown() && !MayProposeServers(&c) {
		return ServerView{}, problem.New(problem.OutOfScope, "This client is not allowed to propose servers: it needs access to all servers and to the write lane.",
			"Ask the user to add the server.")
	}
	edit, err := validateNewServer(s)
	if err != nil {
		return ServerView{}, err
	}
	if err := a.checkNameFree(s.Name, c); err != nil {
		return ServerView{}, err
	}
	switch {
	case c.IsUser():
		err = a.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{Server: s.Name}, "add_server", ""), func() error {
			return a.editor.AddServers(a.configConfirmFunc(ctx), config.NamedEdit{Name: s.Name, ServerEdit: edit})
		})
	case c.IsKnown():
		if err = a.editor.CheckNotSelfReference(edit.Launch); err == nil {
			err = a.addProposal(ctx, s.Name, edit, c)
		}
	default:
		err = problem.New(problem.Forbidden, "This caller is not allowed to add a server.", "")
	}
	v, err := a.serverViewAfter(ctx, c, ServerRef{Name: s.Name}, err)
	if err == nil && c.IsUser() {
		a.withdrawSuperseded(ctx, &v, c)
	}
	return v, err
}

// AddServers adds several servers in one edit of the file, with one proof of presence. refused contains the errors of
// the servers that were not added, by index. If err is not nil, no server is added.
func (a *Admin) AddServers(ctx context.Context, c Caller, all []AddServerRequest) (views []ServerView, refused []error, err error) {
	if err := checkBatchSize(len(all), "servers", "added", "servers"); err != nil {
		return nil, nil, err
	}
	views, refused = make([]ServerView, len(all)), make([]error, len(all))
	if c.IsUser() {
		if refused, err = addServerBatch(ctx, a, c, all); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range all {
		switch {
		case refused[i] != nil:
		case !c.IsUser():
			views[i], refused[i] = a.AddServer(ctx, c, s)
		default:
			if views[i], refused[i] = a.Server(ctx, c, ServerRef{Name: s.Name}); refused[i] == nil {
				a.withdrawSuperseded(ctx, &views[i], c)
			}
		}
	}
	return views, refused, nil
}

// addServerBatch adds the valid servers in one edit. It records the servers that it added and those that the file does
// not accept.
func addServerBatch(ctx context.Context, a *Admin, c Caller, all []AddServerRequest) (refused []error, err error) {
	var sound []config.NamedEdit
	var at []int // indexes in all
	refused = make([]error, len(all))
	recorded := func(name string, do func() error) error {
		return a.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{Server: name}, "add_server", ""), do)
	}
	for i, s := range all {
		one := config.NamedEdit{Name: s.Name}
		if one.ServerEdit, err = validateNewServer(s); err == nil {
			err = a.checkNameFree(s.Name, c)
		}
		if refused[i] = err; err == nil {
			sound, at = append(sound, one), append(at, i)
		}
	}
	var fit []config.NamedEdit
	for n, unfit := range checkEachEdit(a.editor, sound) {
		if unfit == nil {
			fit = append(fit, sound[n])
		} else {
			refused[at[n]] = recorded(sound[n].Name, func() error { return unfit })
		}
	}
	if len(fit) == 0 {
		return refused, nil
	}
	add := func() error { return a.editor.AddServers(a.configConfirmFunc(ctx), fit...) }
	for _, one := range fit { // one record per server
		next := add
		add = func() error { return recorded(one.Name, next) }
	}
	return refused, add()
}

// checkEachEdit returns the error of each edit. It uses bisection, because each check reads the whole file.
func checkEachEdit(e ConfigEditor, all []config.NamedEdit) []error {
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
	return append(checkEachEdit(e, all[:half]), checkEachEdit(e, all[half:])...)
}

// isProposed reports whether a name belongs to a proposal, not to a configured server.
func (a *Admin) isProposed(name string) (bool, error) {
	if a.Config().Server(name) != nil {
		return false, nil
	}
	if _, proposed := a.Book.FindProposal(name); proposed {
		return true, nil
	}
	return false, a.serverNotFoundError(name)
}

// RemoveServer removes a configured server or a proposal, and deletes the decisions about it.
func (a *Admin) RemoveServer(ctx context.Context, c Caller, in ServerRef) (Removed, error) {
	name := in.Name
	return Removed{Removed: name}, a.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{Server: name}, "remove_server", ""), func() error {
		proposed, err := a.isProposed(name)
		if err == nil && !proposed {
			err = a.removeServerAndLogin(ctx, name, func() error { return a.editor.RemoveServer(name) })
		}
		if err == nil {
			err = a.Book.ForgetServer(ctx, name)
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

// ChangeServer sets or removes one key of a server in the configuration. Changes of enabled and quarantined are
// recorded like the operations that change only these keys.
func (a *Admin) ChangeServer(ctx context.Context, c Caller, in ServerChange) (ServerView, error) {
	kind, action, detail := activity.ConfigChange, "set_"+problem.ClipName(in.Key), describeServerChange(in)
	allowed := slices.Contains(ChangeableServerKeys(), in.Key)
	switch in.Key + " " + detail {
	case "quarantined true":
		return a.QuarantineServer(ctx, c, in.ServerRef)
	case "enabled true":
		kind, action, detail, allowed = activity.ServerChange, "enable", "", true
	case "enabled false":
		kind, action, detail, allowed = activity.ServerChange, "disable", "", true
	}
	err := a.runUserAction(c, newActionRecord(c, kind, tool.ID{Server: in.Name}, action, detail), func() error {
		if !allowed {
			return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed this way.", problem.ClipName(in.Key)).
				WithHint("The keys are "+strings.Join(ChangeableServerKeys(), ", ")+"; edit mcp_config.json for other keys.").With("parameter", "key").With("allowed", ChangeableServerKeys())
		}
		switch proposed, err := a.isProposed(in.Name); {
		case err != nil:
			return err
		case proposed:
			return onlyProposedError(in.Name)
		}
		return a.editor.SetServer(a.configConfirmFunc(ctx), in.Name, in.Key, in.Value)
	})
	return a.serverViewAfter(ctx, c, in.ServerRef, err)
}

func keyNotChangeableError(key string) error {
	return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed this way.", problem.ClipName(key)).
		WithHint("Edit mcp_config.json.").With("parameter", "key").With("allowed", ChangeableServerKeys())
}

// describeServerChange describes a change for its record. Because launch settings may contain secrets, it includes only
// the names of variables and headers.
func describeServerChange(in ServerChange) string {
	if in.Value == nil {
		return "taken out"
	}
	switch in.Key {
	case "env", "headers":
		var names []string
		_ = wirejson.EachMember(in.Value, func(name, value []byte) error {
			if wirejson.Kind(value) == 'n' {
				name = append(name, " taken out"...)
			}
			names = append(names, string(name))
			return nil
		})
		return problem.ClipName(strings.Join(names, ", "))
	case "command", "url":
		return ""
	}
	return problem.ClipName(string(in.Value))
}
