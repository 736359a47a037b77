package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
)

// SearchQuery is a search by a user. Empty fields have the configured defaults.
type SearchQuery struct {
	Query     string `query:"q" required:"true" doc:"What the tool should do, in words."`
	Limit     int    `query:"limit" min:"1" max:"100" doc:"How many tools at most; the configured tools_limit when not given."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools whose call_with is the variant of this operation, or that declare nothing and seem to be of it."`
	Explain   bool   `query:"explain" doc:"Whether each tool says why it was found."`
	Locked    bool   `query:"include_disabled" doc:"Whether locked lists matching tools that cannot be called."`
}

// SearchAnswer is the result of a search. Total counts the callable matches.
type SearchAnswer struct {
	Query     string      `json:"query"`
	Total     int         `json:"total"`
	TookMS    float64     `json:"took_ms" doc:"Duration of the search, without the rest of the request."`
	Tokens    int         `json:"tokens" doc:"About what the tools cost an agent that finds them: a quarter of their bytes in its answer."`
	AllTokens int         `json:"all_tokens" doc:"About what all known definitions would cost."`
	Tools     []FoundTool `json:"tools"`
	Locked    []FoundTool `json:"locked" doc:"Matching tools that cannot be called, best first; at most 10. Only with include_disabled."`
}

// FoundTool is a tool that a search found.
type FoundTool struct {
	ToolView
	ToolUsage
	Guessed bool   `json:"guessed,omitempty" doc:"Neither the server nor an override says which operation call_with is to be."`
	Tokens  int    `json:"tokens,omitempty" doc:"About what it costs an agent that finds it: a quarter of its bytes in the answer."`
	Remedy  string `json:"remedy,omitempty" doc:"What would unlock it."`
}

// SearchTools returns the same tools as retrieve_tools, in the same order.
func (i *Inspector) SearchTools(ctx context.Context, c Caller, q SearchQuery) (SearchAnswer, error) {
	operation, _ := policy.ParseOperation(q.Operation) // validated by the surface
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
		one.Tokens = estimateTokens(encodedMatchSize(n, h, detail))
		if q.Explain {
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
