package api

import (
	"context"

	"mcpproxy/internal/ops"
)

// AddServers adds several servers with one confirmation by the user.
var AddServers = declareOperation("POST /servers/add", "addServers", Decide, "Add several servers to the configuration file with one confirmation; each has its own result", addServers).withTimeout(restartTimeout)

// AddedServers lists the result of each server, in order.
type AddedServers struct {
	Results []ServerResult `json:"results"`
}

// ServerResult is the result of adding one server.
type ServerResult struct {
	Name    string           `json:"name"`
	Server  *ops.ServerView  `json:"server,omitempty" doc:"The added server. Absent if it was not added."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why the server was not added. Absent if it was."`
}

func addServers(a *ops.Admin, ctx context.Context, c ops.Caller, in ops.AddServersRequest) (AddedServers, error) {
	views, refused, err := a.AddServers(ctx, c, in.Servers)
	if err != nil {
		return AddedServers{}, err
	}
	var out AddedServers
	for i, s := range in.Servers {
		result := ServerResult{Name: s.Name}
		if refused[i] == nil {
			result.Server = &views[i]
		} else {
			document := newProblemDocument(refused[i])
			result.Problem = &document
		}
		out.Results = append(out.Results, result)
	}
	return out, nil
}

// ViewsAndErrors returns for each server its view, or the reason why it was not added.
func (a AddedServers) ViewsAndErrors() (views []ops.ServerView, refused []error) {
	views, refused = make([]ops.ServerView, len(a.Results)), make([]error, len(a.Results))
	for i, r := range a.Results {
		if r.Server != nil {
			views[i] = *r.Server
		}
		refused[i] = r.Problem.toProblem()
	}
	return views, refused
}
