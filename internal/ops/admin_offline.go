package ops

import (
	"encoding/json"
	"slices"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// OfflineAdmin implements the operations on servers that work without a daemon. They edit the configuration file with
// the daemon's validation. As with an edit by hand, nothing is recorded, and decisions about servers are kept.
type OfflineAdmin struct{ live *config.LiveConfig }

// NewOfflineAdmin returns an OfflineAdmin for a configuration that no daemon uses.
func NewOfflineAdmin(live *config.LiveConfig) OfflineAdmin { return OfflineAdmin{live} }

// offlineWarning returns the warning in every answer, which says that the change takes effect when MCPProxy starts.
func (f OfflineAdmin) offlineWarning() string {
	text := "MCPProxy is not running. The change is saved in " + f.live.Path() + " and takes effect at the next start"
	if f.live.Current().Presence != config.PresenceNone {
		text += "; a part that grants more access waits for `mcpproxy config confirm`"
	}
	return text + "."
}

// serverView returns the view of a server in the file, without its runtime state.
func (f OfflineAdmin) serverView(name string) (ServerView, error) {
	s := f.live.Current().Server(name)
	if s == nil {
		return ServerView{}, problem.Newf(problem.ServerNotFound, "Server '%s' is not in the configuration file.", problem.ClipName(name)).
			WithHint("MCPProxy is not running, so that only the file is known: see it with `mcpproxy config show`.")
	}
	v := unstartedServerView(*s)
	v.Trust, v.Warnings = string(s.Trust), []string{f.offlineWarning()}
	return v, nil
}

// Server returns the view of a server in the file.
func (f OfflineAdmin) Server(in ServerRef) (ServerView, error) { return f.serverView(in.Name) }

// AddServer adds a server. As with Admin.AddServer, the server may start without a review, because the user added it.
func (f OfflineAdmin) AddServer(s AddServerRequest) (ServerView, error) {
	edit, err := validateNewServer(s)
	if err == nil {
		err = checkNameNotConfigured(s.Name, f.live.Current())
	}
	if err == nil {
		err = f.live.AddServers(nil, config.NamedEdit{Name: s.Name, ServerEdit: edit})
	}
	if err != nil {
		return ServerView{}, err
	}
	return f.serverView(s.Name)
}

// RemoveServer removes a server.
func (f OfflineAdmin) RemoveServer(in ServerRef) (Removed, error) {
	return Removed{Removed: in.Name}, f.live.RemoveServer(in.Name)
}

// ChangeServer sets or removes one key of a server.
func (f OfflineAdmin) ChangeServer(in ServerChange) (ServerView, error) {
	if in.Key != "enabled" && !slices.Contains(ChangeableServerKeys(), in.Key) {
		return ServerView{}, keyNotChangeableError(in.Key)
	}
	if err := f.live.SetServer(nil, in.Name, in.Key, in.Value); err != nil {
		return ServerView{}, err
	}
	return f.serverView(in.Name)
}

// EnableServer enables a server.
func (f OfflineAdmin) EnableServer(in ServerRef) (ServerView, error) {
	return f.ChangeServer(ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("true")})
}

// DisableServer disables a server.
func (f OfflineAdmin) DisableServer(in ServerRef) (ServerView, error) {
	return f.ChangeServer(ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("false")})
}
