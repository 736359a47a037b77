package ops

import (
	"encoding/json"
	"slices"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// ConfigFile is the operations on servers that a person has while no daemon runs: they
// change the configuration file, which is checked as a daemon would. As when a
// person edits it by hand, nothing is on record, and what is decided about
// servers stays as it is.
type ConfigFile struct{ live *config.Live }

// NewFile makes a File of a configuration that nobody else has in force.
func NewFile(live *config.Live) ConfigFile { return ConfigFile{live} }

// later is what each change of the file alone is told with.
func (f ConfigFile) later() string {
	text := "MCPProxy is not running: this stands in " + f.live.Path() + " and takes effect when MCPProxy starts"
	if f.live.Current().Presence != config.PresenceNone {
		text += "; what of it widens waits until `mcpproxy config confirm`"
	}
	return text + "."
}

// view is a server of the file, of which nothing else is known.
func (f ConfigFile) view(name string) (ServerView, error) {
	s := f.live.Current().Server(name)
	if s == nil {
		return ServerView{}, problem.Newf(problem.ServerNotFound, "Server '%s' is not in the configuration file.", problem.Brief(name)).
			WithHint("MCPProxy is not running, so that only the file is known: see it with `mcpproxy config show`.")
	}
	v := unstarted(*s)
	v.Trust, v.Warnings = string(s.Trust), []string{f.later()}
	return v, nil
}

// Server returns a server of the file.
func (f ConfigFile) Server(in ServerRef) (ServerView, error) { return f.view(in.Name) }

// AddServer adds a server. That a person writes it into the file is what lets it
// start, as in Admin.AddServer.
func (f ConfigFile) AddServer(s NewServer) (ServerView, error) {
	edit, err := check(s)
	if err == nil {
		err = nameIsFree(s.Name, f.live.Current())
	}
	if err == nil {
		err = f.live.AddServers(nil, config.NamedEdit{Name: s.Name, ServerEdit: edit})
	}
	if err != nil {
		return ServerView{}, err
	}
	return f.view(s.Name)
}

// RemoveServer takes a server out.
func (f ConfigFile) RemoveServer(in ServerRef) (Removed, error) {
	return Removed{Removed: in.Name}, f.live.RemoveServer(in.Name)
}

// ChangeServer sets one key of a server, or takes it out.
func (f ConfigFile) ChangeServer(in ServerChange) (ServerView, error) {
	if in.Key != "enabled" && !slices.Contains(ChangeableKeys(), in.Key) {
		return ServerView{}, notChangeable(in.Key)
	}
	if err := f.live.SetServer(nil, in.Name, in.Key, in.Value); err != nil {
		return ServerView{}, err
	}
	return f.view(in.Name)
}

// EnableServer enables a server.
func (f ConfigFile) EnableServer(in ServerRef) (ServerView, error) {
	return f.ChangeServer(ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("true")})
}

// DisableServer disables a server.
func (f ConfigFile) DisableServer(in ServerRef) (ServerView, error) {
	return f.ChangeServer(ServerChange{ServerRef: in, Key: "enabled", Value: json.RawMessage("false")})
}
