package ops

import (
	"context"

	"mcpproxy/internal/config/auth"
)

// ProfileView is a profile with the servers and tools that it currently includes. An absent list means no limit.
type ProfileView struct {
	Name    string         `json:"name"`
	Servers []string       `json:"servers,omitempty" doc:"Names or patterns of its servers. Absent if all servers are allowed."`
	Tools   []ProfileTools `json:"tools,omitempty" doc:"The allowed tools, by server. A server without an entry has no limit."`
	Lanes   []string       `json:"lanes,omitempty" doc:"The allowed lanes: read, write, destructive. Absent if all lanes are allowed."`
	Reaches []Reached      `json:"reaches" doc:"The servers that are in the profile now, ordered by name."`
}

// ProfileTools limits the tools of the servers that match a pattern.
type ProfileTools struct {
	Server   string   `json:"server" doc:"A name or pattern."`
	Patterns []string `json:"patterns" doc:"Names or patterns of tools."`
}

// Reached is a server in a profile.
type Reached struct {
	Server   string `json:"server"`
	Tools    int    `json:"tools" doc:"The number of the server's tools that are in the profile."`
	Callable int    `json:"callable" doc:"The number of these tools that can be called."`
}

// ProfileList lists all profiles in the order of the configuration file.
type ProfileList struct {
	Profiles []ProfileView `json:"profiles"`
}

// Profiles returns all profiles.
func (a *AccessOperations) Profiles(context.Context, Caller, Nothing) (ProfileList, error) {
	cfg, snapshot := a.gateway.Config(), a.gateway.Catalog.Current()
	list := ProfileList{[]ProfileView{}}
	for _, p := range cfg.Masked().Profiles {
		v := ProfileView{Name: p.Name, Servers: p.Servers, Lanes: p.Lanes, Reaches: []Reached{}}
		for _, t := range p.Tools {
			v.Tools = append(v.Tools, ProfileTools{t.Server, append([]string{}, t.Patterns...)})
		}
		for _, s := range snapshot.ScopedTo(auth.NewScope(cfg.ProfileRule(p.Name))).Servers() {
			v.Reaches = append(v.Reaches, Reached{s.Name, len(s.Tools), s.Callable})
		}
		list.Profiles = append(list.Profiles, v)
	}
	return list, nil
}
