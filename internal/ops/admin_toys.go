package ops

import (
	"cmp"
	"context"
	"slices"

	"mcpproxy/internal/problem"
)

// Toys adds the small servers that come with the program, for who wants to see it
// work before anything of their own is in it.
type Toys struct {
	admin *Admin
	all   []NewServer
}

// NewToys makes Toys of the servers that can be added; none is fine.
func NewToys(a *Admin, all []NewServer) *Toys {
	return &Toys{a, all}
}

// AddedToys is what adding them came to.
type AddedToys struct {
	Added   []string     `json:"added" doc:"The names of those that were not there before."`
	Servers []ServerView `json:"servers" doc:"All of them."`
}

// Add adds to the configuration those that are not in it. Asked again it adds
// nothing; a server of a person's own that has such a name stays as it is, and
// nothing is added beside it.
func (t *Toys) Add(ctx context.Context, c Caller, _ Nothing) (AddedToys, error) {
	if len(t.all) == 0 {
		return AddedToys{}, problem.New(problem.NotFound, "This MCPProxy has no toy servers.", "Start it with `mcpproxy serve`, or add servers of your own.")
	}
	for _, s := range t.all {
		if there := t.admin.Config().Server(s.Name); there != nil && !slices.Equal(there.Args, s.Args) {
			return AddedToys{}, problem.Newf(problem.Conflict, "There is a server '%s' already, and it is not the toy of this name.", s.Name).
				WithHint("Remove it first, or add servers of your own.").With("server", s.Name)
		}
	}
	done := AddedToys{Added: []string{}}
	var missing []NewServer
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
