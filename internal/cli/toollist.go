package cli

import (
	"context"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// toolList contains the tools that a filter selects.
type toolList struct {
	Tools    []ops.ToolView `json:"tools"`
	Total    int            `json:"total"`
	Unhinted []ops.Unhinted `json:"unhinted,omitempty"`
}

// The page size, and the number of times that the list is restarted after the daemon has dropped it.
const (
	toolsPageSize  = 1000
	maxListRetries = 3
)

// fetchAllTools requests all pages of a tool list from one snapshot.
func fetchAllTools(ctx context.Context, c *api.Client, q ops.ToolQuery) (toolList, error) {
	q.Limit = toolsPageSize
	for range maxListRetries {
		all := toolList{Tools: []ops.ToolView{}}
		for q.Offset, q.Snapshot = 0, ""; ; q.Offset = len(all.Tools) {
			page, err := api.ListTools.Call(ctx, c, q)
			if err != nil {
				return toolList{}, err
			}
			if q.Offset > 0 && page.Snapshot != q.Snapshot {
				break
			}
			for i := range page.Tools {
				all.Tools = append(all.Tools, page.Tools[i].ToToolView())
			}
			q.Snapshot = page.Snapshot
			if len(page.Tools) == 0 || len(all.Tools) >= page.Total {
				all.Total, all.Unhinted = page.Total, page.Unhinted
				return all, nil
			}
		}
	}
	return toolList{}, problem.New(problem.Conflict, "The list of tools expired while it was read.", "Too many lists are being read at the same time. Try again.")
}
