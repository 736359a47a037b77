package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
)

// randomLaneTool returns the definition of a tool whose effect is declared by hints, by its arguments, or not at all.
func randomLaneTool(random *rand.Rand, name string) string {
	hints := []string{`{"readOnlyHint":true}`, `{"readOnlyHint":false,"destructiveHint":false}`, `{"destructiveHint":true}`,
		`{"readOnlyHint":true,"destructiveHint":true}`, `{}`, `null`}
	properties := []string{`{}`, `{"sql":{"type":"string"}}`, `{"command":{"type":"string"}}`, `{"n":{"type":"integer"}}`}
	return fmt.Sprintf(`{"name":%q,"description":"number %d","annotations":%s,"inputSchema":{"type":"object","properties":%s}}`,
		name, random.IntN(1000), hints[random.IntN(len(hints))], properties[random.IntN(len(properties))])
}

// TestRandomOperationsAtLanes checks random operations while servers and configuration change. A lane lists only
// tools that a call there may reach, each tool is listed in the lane that searches return for it, a server receives
// only calls that passed the lane's decision, and each call is recorded with the variant of its endpoint.
func TestRandomOperationsAtLanes(t *testing.T) {
	seed := volume.Seed(t, 33)
	random := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "c", "d", "e", "f", "query", "delete_all"}
	var definitions []string
	change := func() []string {
		definitions = nil
		for _, name := range names {
			if random.IntN(5) > 0 {
				definitions = append(definitions, randomLaneTool(random, name))
			}
		}
		return definitions
	}
	rules := []config.ArgumentLaneRule{{Pattern: "query", By: policy.BySQL, Argument: "$.sql"}, {Pattern: "f", By: policy.ByAction, Argument: "$.do", Destructive: []string{"delete"}}}
	lanes := laneWorlds(t, func(c *config.Config) { enforced(c); c.Servers[0].Lanes, c.Servers[0].Trust = rules, config.TrustAuto }, change()...)
	w := lanes[policy.CallToolRead]
	sent := 0
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		sent++
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	modes := []policy.ArgumentEffectMode{policy.ArgumentsOff, policy.ArgumentsAdvise, policy.ArgumentsEnforce}
	arguments := []string{`{}`, `{"sql":"SELECT 1"}`, `{"sql":"DROP TABLE x"}`, `{"sql":"INSERT INTO x VALUES (1)"}`, `{"command":"ls"}`, `{"command":"rm -rf /"}`,
		`{"n":1}`, `{"n":"x"}`, `{"do":"delete"}`, `{"do":"list"}`, `[1]`}
	passed, refused := 0, 0
	for step := range volume.FullOrQuick(10_000, 3_000) {
		v := laneVariants[random.IntN(len(laneVariants))]
		at := lanes[v]
		switch n := random.IntN(20); {
		case n == 0:
			w.SetTools(change()...)
		case n == 1:
			mode, require, switchedOff := modes[random.IntN(len(modes))], random.IntN(2) == 0, names[random.IntN(len(names))]
			w.Reload(func(c *config.Config) {
				c.Intent.JudgeArguments, c.Intent.RequireIntent, c.Servers[0].DisabledTools = mode, require, []string{switchedOff}
				c.Servers[0].Lanes = rules[:random.IntN(3)]
			})
		case n < 6:
			listed := at.listedNames()
			for _, tool := range w.Catalog.Current().Server("s").Tools {
				name := tool.ID.Tool
				here := slices.Contains(listed, "s__"+name)
				switch byArguments := name == "query" || name == "f"; {
				case tool.Status != policy.Callable && here:
					t.Fatalf("step %d: %s lists %s, which cannot be called", step, v, name)
				case tool.Status == policy.Callable && tool.CallWith == v && !here:
					t.Fatalf("step %d: %s is called with %s but not listed there: %q", step, name, v, listed)
				case here && tool.CallWith != v && !byArguments:
					t.Fatalf("step %d: %s lists %s, which is called with %s", step, v, name, tool.CallWith)
				}
			}
		default:
			name, args := names[random.IntN(len(names))], arguments[random.IntN(len(arguments))]
			w.Begun, w.Appended, sent = nil, nil, 0
			got, text := refusal(at.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"s__`+name+`","arguments":`+args+`}`)))
			records, reached := append(w.Begun, w.Appended...), sent
			if len(records) != 1 || records[0].Metadata.ToolVariant != v.String() || records[0].Metadata.Intent == nil {
				t.Fatalf("step %d: %s %s %s: records %+v", step, v, name, args, records)
			}
			_, err := at.all.Gate.Call(t.Context(), LaneCall{CallTool: v, Name: "s:" + name, Args: json.RawMessage(args), Caller: anAgent,
				Declared: policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: v.Operation().String()}})
			want := problem.Code("")
			if err != nil {
				want = problem.From(err).Code
			}
			if got != want || (reached == 1) != (want == "") {
				t.Fatalf("step %d: %s %s %s: %q (%s), %d calls sent; by the call tool %q", step, v, name, args, got, text, reached, want)
			}
			if strings.Contains(text, "call_tool") {
				t.Fatalf("step %d: a refusal at a lane endpoint names a call tool: %s", step, text)
			}
			if got == "" {
				passed++
			} else {
				refused++
			}
		}
	}
	if passed < 50 || refused < 100 {
		t.Errorf("%d calls passed, %d were refused, the test covers too little", passed, refused)
	}
}
