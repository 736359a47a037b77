package ops

import (
	"cmp"
	"slices"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// Unhinted counts the tools of a server that would benefit from enforcing inferred hints.
type Unhinted struct {
	Server string `json:"server"`
	Tools  int    `json:"tools" doc:"The number of callable tools that declare neither readOnlyHint nor destructiveHint."`
	Reads  int    `json:"reads" doc:"The number of these tools that are inferred to be reads."`
}

// countUnhintedTools counts a server's usable tools without hints, and how many of them look like reads. It returns nil
// if the user has configured infer_hints or if no tool would become a read.
func countUnhintedTools(s *catalog.Server, c *config.Server) *Unhinted {
	if c == nil || c.InferHints != "" {
		return nil
	}
	u := Unhinted{Server: s.Name}
	for _, t := range s.Tools {
		if t.InferMode != policy.InferAdvise || displayedToolStatus(t) != "" {
			continue
		}
		switch t.InferredOperation().Operation {
		case policy.NoOperation:
			continue
		case policy.Read:
			u.Reads++
		}
		u.Tools++
	}
	if u.Reads == 0 {
		return nil
	}
	return &u
}

// listServersWithUnhintedTools returns the servers that would benefit from enforcing inferred hints, with the largest
// benefit first.
func listServersWithUnhintedTools(servers []*catalog.Server, cfg *config.Config) (all []Unhinted) {
	for _, s := range servers {
		if u := countUnhintedTools(s, cfg.Server(s.Name)); u != nil {
			all = append(all, *u)
		}
	}
	slices.SortStableFunc(all, func(a, b Unhinted) int { return cmp.Compare(b.Reads, a.Reads) })
	return all
}
