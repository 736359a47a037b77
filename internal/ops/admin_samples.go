package ops

import (
	"cmp"
	"context"
	"slices"

	"mcpproxy/internal/problem"
)

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
