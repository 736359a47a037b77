package ops

import (
	"cmp"
	"slices"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// Unhinted tells what it would be good for to enforce what is inferred of a
// server's tools.
type Unhinted struct {
	Server string `json:"server"`
	Tools  int    `json:"tools" doc:"How many tools that can be called say neither readOnlyHint nor destructiveHint."`
	Reads  int    `json:"reads" doc:"How many of those look like reads."`
}

// unhinted is nil where a person has chosen what is made of tools that say nothing,
// and where nothing is gained: no tool would be called as a read that is not now.
func unhinted(s *catalog.Server, c *config.Server) *Unhinted {
	if c == nil || c.InferHints != "" {
		return nil
	}
	u := Unhinted{Server: s.Name}
	for _, t := range s.Tools {
		if t.InferMode != policy.InferAdvise || StatusOf(t) != "" {
			continue
		}
		switch t.Inferred().Operation {
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

// allUnhinted returns those of some servers, where most is gained first.
func allUnhinted(servers []*catalog.Server, cfg *config.Config) (all []Unhinted) {
	for _, s := range servers {
		if u := unhinted(s, cfg.Server(s.Name)); u != nil {
			all = append(all, *u)
		}
	}
	slices.SortStableFunc(all, func(a, b Unhinted) int { return cmp.Compare(b.Reads, a.Reads) })
	return all
}
