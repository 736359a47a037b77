package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

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
	unpinned := ""
	switch {
	case c.IsUser():
		all := []config.NamedEdit{{Name: s.Name, ServerEdit: edit}}
		unpinned = a.pinNewServers(ctx, all)[0]
		err = a.addServerOfUser(ctx, c, all[0])
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
		v.Warnings = appendUnpinned(v.Warnings, s.Name, unpinned)
	}
	return v, err
}

// pinNewServers pins the versions that new servers start, except those that wait for an approval, which pins them. It
// returns for each server why it is not pinned.
func (a *Admin) pinNewServers(ctx context.Context, all []config.NamedEdit) (why []string) {
	why = make([]string, len(all))
	if a.pinLaunch == nil {
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	var pinned sync.WaitGroup
	slots := make(chan struct{}, maxRegistryRequests)
	for i := range all {
		if s := &all[i]; !s.Quarantined && s.Pin == "" {
			pinned.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				var found config.Server
				found, why[i] = a.pinLaunch(ctx, config.Server{Name: s.Name, Launch: s.Launch})
				s.Pin = found.Pin
			})
		}
	}
	pinned.Wait()
	return why
}

// appendUnpinned appends the warning that a server is not pinned; why is "" for the others.
func appendUnpinned(warnings []string, server, why string) []string {
	if why == "" {
		return warnings
	}
	return append(warnings, unpinnedNotice(server, why))
}

// unpinnedNotice tells that the version of a server is not pinned.
func unpinnedNotice(server, why string) string {
	return "The version is not pinned, so each start may use another one: " + problem.ClipForDisplay(why, 300) + ". To pin it, run `mcpproxy upstream update " + ShellQuote(server) + "`."
}

// addServerOfUser adds a validated server to the configuration.
func (a *Admin) addServerOfUser(ctx context.Context, c Caller, edit config.NamedEdit) error {
	return a.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{Server: edit.Name}, "add_server", ""), func() error {
		return a.editor.AddServers(a.configConfirmFunc(ctx), edit)
	})
}

// AddServers adds several servers in one edit of the file, with one proof of presence. refused contains the errors of
// the servers that were not added, by index. If err is not nil, no server is added.
func (a *Admin) AddServers(ctx context.Context, c Caller, all []AddServerRequest) (views []ServerView, refused []error, err error) {
	if err := checkBatchSize(len(all), "servers", "added", "servers"); err != nil {
		return nil, nil, err
	}
	views, refused = make([]ServerView, len(all)), make([]error, len(all))
	unpinned := make([]string, len(all))
	if c.IsUser() {
		if refused, unpinned, err = addServerBatch(ctx, a, c, all); err != nil {
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
				views[i].Warnings = appendUnpinned(views[i].Warnings, s.Name, unpinned[i])
			}
		}
	}
	return views, refused, nil
}

// addServerBatch adds the valid servers in one edit. It records the servers that it added and those that the file does
// not accept.
func addServerBatch(ctx context.Context, a *Admin, c Caller, all []AddServerRequest) (refused []error, unpinned []string, err error) {
	var sound []config.NamedEdit
	var at []int // indexes in all
	refused, unpinned = make([]error, len(all)), make([]string, len(all))
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
	for n, why := range a.pinNewServers(ctx, sound) {
		unpinned[at[n]] = why
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
		return refused, unpinned, nil
	}
	add := func() error { return a.editor.AddServers(a.configConfirmFunc(ctx), fit...) }
	for _, one := range fit { // one record per server
		next := add
		add = func() error { return recorded(one.Name, next) }
	}
	return refused, unpinned, add()
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

// ConfigEditor changes the configuration file and applies each change before it returns. config.LiveConfig implements
// it.
type ConfigEditor interface {
	AddServers(permit config.ConfirmFunc, all ...config.NamedEdit) error
	CheckNewServers(all ...config.NamedEdit) error
	RemoveServer(name string) error
	SetServer(permit config.ConfirmFunc, name, field string, value json.RawMessage) error
	SetHintOverride(permit config.ConfirmFunc, name, tool string, hints json.RawMessage) error
	SetToolSettings(permit config.ConfirmFunc, server, name string, changes []config.ToolSettingChange) error
	// CheckNotSelfReference rejects a launch that connects back to this MCPProxy.
	CheckNotSelfReference(config.Launch) error
}

// Admin implements the read operations of Gateway and the operations that change servers and approvals.
type Admin struct {
	*Gateway
	editor ConfigEditor
	// pinLaunch returns a server with a pin for the version that its command would start now; why tells why it has none.
	// nil: launches are approved as they are. See VersionOperations.
	pinLaunch func(ctx context.Context, s config.Server) (pinned config.Server, why string)
	summaries changeSummaryCache
}

// NewAdmin returns an Admin that edits the configuration through e.
func NewAdmin(g *Gateway, e ConfigEditor) *Admin { return &Admin{Gateway: g, editor: e} }

// serverViewAfter returns the view of the server after an operation, or err if the operation failed.
func (a *Admin) serverViewAfter(ctx context.Context, c Caller, in ServerRef, err error) (ServerView, error) {
	if err != nil {
		return ServerView{}, err
	}
	return a.Server(ctx, c, in)
}

// Limits for a new server.
const (
	maxServerText  = 8 << 10  // bytes per text
	maxServerParts = 256      // number of arguments, variables or headers
	maxServer      = 64 << 10 // bytes of all texts together
)

// validateNewServer validates the name, launch and size of a new server. config.LiveConfig validates everything else
// when it writes the file.
func validateNewServer(s AddServerRequest) (config.ServerEdit, error) {
	if err := tool.CheckServerName(s.Name); err != nil {
		return config.ServerEdit{}, invalidServerParameterError("name", "The name of the server cannot be used: "+err.Error()+".")
	}
	if (s.URL == "") == (s.Command == "") {
		return config.ServerEdit{}, invalidServerParameterError("command", "A server has either a command or a url.")
	}
	if u, err := url.Parse(s.URL); s.URL != "" && !strings.Contains(s.URL, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return config.ServerEdit{}, invalidServerParameterError("url", "The url must begin with http:// or https:// and name a host.")
	}
	if exceedsSizeLimits(s) {
		return config.ServerEdit{}, invalidServerParameterError("args", "The server has too many texts, or a text that is too long.")
	}
	edit := config.ServerEdit{
		Launch: s.Launch, Quarantined: s.Quarantined, Trust: config.Trust(s.Trust),
	}
	return edit, edit.CheckValues()
}

// exceedsSizeLimits reports whether a new server exceeds a size limit.
func exceedsSizeLimits(s AddServerRequest) bool {
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

func invalidServerParameterError(parameter, message string) error {
	return problem.New(problem.InvalidParameter, message, "Change it and try again.").With("parameter", parameter)
}

// ParsePastedServers parses servers from a pasted text and returns them in the form that AddServer accepts. It adds,
// stores and records nothing.
func (a *Admin) ParsePastedServers(_ context.Context, _ Caller, in PastedText) (Parsed, error) {
	return parsePastedServers(in, a.Config(), a.editor.CheckNotSelfReference)
}

// SampleServers adds the sample servers that are part of the program, for users who want to try it before they add
// their own servers.
type SampleServers struct {
	admin *Admin
	all   []AddServerRequest
}

// NewSampleServers returns a SampleServers for the given servers. The list may be empty.
func NewSampleServers(a *Admin, all []AddServerRequest) *SampleServers {
	return &SampleServers{a, all}
}

// AddedToys is the result of SampleServers.AddMissing.
type AddedToys struct {
	Added   []string     `json:"added" doc:"The names of the added servers."`
	Servers []ServerView `json:"servers" doc:"All sample servers, including those that existed before."`
}

// AddMissing adds the sample servers that are not in the configuration. It is idempotent. If another server has the
// name of a sample server, AddMissing changes nothing and returns a conflict.
func (t *SampleServers) AddMissing(ctx context.Context, c Caller, _ Nothing) (AddedToys, error) {
	if len(t.all) == 0 {
		return AddedToys{}, problem.New(problem.NotFound, "This MCPProxy has no sample servers.", "Start it with `mcpproxy serve`, or add servers of your own.")
	}
	for _, s := range t.all {
		if there := t.admin.Config().Server(s.Name); there != nil && !slices.Equal(there.Args, s.Args) {
			return AddedToys{}, problem.Newf(problem.Conflict, "A server '%s' already exists and is not the sample server with this name.", s.Name).
				WithHint("Remove it first, or add servers of your own.").With("server", s.Name)
		}
	}
	done := AddedToys{Added: []string{}}
	var missing []AddServerRequest
	for _, s := range t.all {
		if t.admin.Config().Server(s.Name) == nil {
			missing = append(missing, s)
			done.Added = append(done.Added, s.Name)
		}
	}
	if len(missing) > 0 {
		_, refused, err := t.admin.AddServers(ctx, c, missing)
		if err = cmp.Or(err, cmp.Or(refused...)); err != nil {
			return AddedToys{}, err
		}
	}
	for _, s := range t.all {
		view, err := t.admin.Server(ctx, c, ServerRef{Name: s.Name})
		if err != nil {
			return AddedToys{}, err
		}
		done.Servers = append(done.Servers, view)
	}
	return done, nil
}
