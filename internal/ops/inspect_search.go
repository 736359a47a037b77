package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
)

// SearchQuery is a search by a user. Empty fields mean the configured defaults.
type SearchQuery struct {
	Query     string `query:"q" required:"true" doc:"The search terms: what the tool should do."`
	Limit     int    `query:"limit" min:"1" max:"100" doc:"The maximum number of tools. Default: the configured tools_limit."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools of this operation type: according to their call_with or, for tools without hints, to the inferred operation."`
	Explain   bool   `query:"explain" doc:"Whether the response says for each tool why it was found."`
	Locked    bool   `query:"include_disabled" doc:"Whether the response lists matching tools that cannot be called, in locked."`
}

// SearchAnswer is the result of a search. Total counts the callable matches.
type SearchAnswer struct {
	Query     string      `json:"query"`
	Total     int         `json:"total"`
	TookMS    float64     `json:"took_ms" doc:"The duration of the search itself, in milliseconds."`
	Tokens    int         `json:"tokens" doc:"The estimated size of the tools in an agent's search result, in tokens (bytes divided by 4)."`
	AllTokens int         `json:"all_tokens" doc:"The estimated size of all known definitions, in tokens."`
	Tools     []FoundTool `json:"tools"`
	Locked    []FoundTool `json:"locked" doc:"Matching tools that cannot be called, best match first, at most 10. Absent without include_disabled."`
}

// FoundTool is a tool that a search found.
type FoundTool struct {
	ToolView
	ToolUsage
	Guessed bool   `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Tokens  int    `json:"tokens,omitempty" doc:"The estimated size of the tool in an agent's search result, in tokens (bytes divided by 4)."`
	Remedy  string `json:"remedy,omitempty" doc:"What the user can do to make the tool callable."`
}

// SearchTools returns the same tools as retrieve_tools in the same order.
func (i *Inspector) SearchTools(ctx context.Context, c Caller, q SearchQuery) (SearchAnswer, error) {
	operation, _ := policy.ParseOperation(q.Operation) // the surface has validated it
	began := time.Now()
	found := i.gateway.SearchTools(&RetrieveRequest{Query: q.Query, Limit: q.Limit, Operation: operation, Caller: c})
	var locked []catalog.Hit
	if q.Locked {
		locked, _ = found.lockedTools(nil)
	}
	took := time.Since(began)
	a := SearchAnswer{Query: q.Query, Total: found.Total, TookMS: float64(took.Microseconds()) / 1000,
		AllTokens: estimateTokens(found.DefinitionBytes()), Tools: make([]FoundTool, len(found.Hits)), Locked: make([]FoundTool, len(locked))}
	detail, use := i.gateway.Config().ToolsDetail, i.loadToolUsage(ctx)
	shown := func(h catalog.Hit) FoundTool {
		return FoundTool{ToolView: toToolView(h.Tool, h.Score), ToolUsage: use.usageOf(h.Tool), Guessed: h.Tool.LacksDeclaredHints()}
	}
	for n, h := range found.Hits {
		one := shown(h)
		one.Tokens = estimateTokens(encodedMatchSize(h, detail))
		if q.Explain && h.Rank >= 0 {
			one.Why = found.MatchReasons(h)
		}
		a.Tokens += one.Tokens
		a.Tools[n] = one
	}
	for n, h := range locked {
		a.Locked[n] = shown(h)
		a.Locked[n].Remedy = h.Tool.Status.Remedy()
	}
	return a, nil
}
