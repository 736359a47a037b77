package gate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
)

var laneVariants = []policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive}

// laneWorlds returns the same servers at the endpoints of the three lanes.
func laneWorlds(t *testing.T, change func(*config.Config), definitions ...string) map[policy.CallToolVariant]*aggregateWorld {
	w, _ := allWorld(t, change, definitions...)
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	all := map[policy.CallToolVariant]*aggregateWorld{}
	for _, v := range laneVariants {
		deps := w.all.AggregateDeps
		deps.Lane = v
		all[v] = &aggregateWorld{Harness: w.Harness, all: NewAggregateEndpoint(deps)}
	}
	return all
}

func (w *aggregateWorld) listedNames() (names []string) {
	p, _ := w.page("tools/list", "")
	for _, raw := range p.items {
		name, _ := wirejson.String(wirejson.Find(raw, "name"))
		names = append(names, name)
	}
	return names
}

// TestLanesListTheirTools checks that a tool is listed in the lane of its hints, and, with a configured rule, in each
// lane that its arguments may reach.
func TestLanesListTheirTools(t *testing.T) {
	lanes := laneWorlds(t, func(c *config.Config) {
		c.Servers[0].Lanes = []config.ArgumentLaneRule{{Pattern: "wip*", By: policy.BySQL, Argument: "$.sql"},
			{Pattern: "act", By: policy.ByAction, Argument: "$.do", Destructive: []string{"delete"}}}
	}, aggregateReads, aggregateDeletes, queryTool, wipesTool, `{"name":"act"}`, `{"name":"safe","annotations":{"readOnlyHint":false,"destructiveHint":false}}`)
	list := func() map[policy.CallToolVariant]string {
		out := map[policy.CallToolVariant]string{}
		for v, w := range lanes {
			out[v] = strings.Join(w.listedNames(), " ")
		}
		return out
	}
	want := map[policy.CallToolVariant]string{
		policy.CallToolRead:        "s__reads s__wipes",
		policy.CallToolWrite:       "s__act s__query s__safe s__wipes",
		policy.CallToolDestructive: "s__act s__deletes s__wipes",
	}
	if got := list(); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	digest := func(v policy.CallToolVariant) any {
		d, _ := lanes[v].all.currentListDigests(catalogtest.NewRequest("", ""))
		return d
	}
	before := []any{digest(policy.CallToolRead), digest(policy.CallToolWrite), digest(policy.CallToolDestructive)}
	lanes[policy.CallToolRead].SetTools(strings.Replace(aggregateReads, "readOnlyHint", "destructiveHint", 1), aggregateDeletes, queryTool, wipesTool, `{"name":"act"}`,
		`{"name":"safe","annotations":{"readOnlyHint":false,"destructiveHint":false}}`)
	moved := []bool{digest(policy.CallToolRead) != before[0], digest(policy.CallToolWrite) != before[1], digest(policy.CallToolDestructive) != before[2]}
	if !slices.Equal(moved, []bool{true, false, true}) {
		t.Errorf("a tool moved from the read to the destructive lane; announced in read, write, destructive: %v", moved)
	}
	lanes[policy.CallToolRead].Reload(func(c *config.Config) { c.Intent.JudgeArguments = policy.ArgumentsOff })
	if got := list(); strings.Contains(got[policy.CallToolRead], "wipes") {
		t.Errorf("arguments are not considered, but the lanes list %v", got)
	}
}

// TestLaneAddressesDecideAsCallTools checks that at the endpoint of a lane each call has the same outcome, code and
// record as by the call tool with a declared intent, and that a refusal names the endpoint to use.
func TestLaneAddressesDecideAsCallTools(t *testing.T) {
	definitions := []string{queryTool, wipesTool, viewsTool, readsTool, destroysTool, `{"name":"changes","annotations":{"readOnlyHint":false,"destructiveHint":false}}`,
		`{"name":"silent"}`, `{"name":"denied"}`}
	names := []string{"query", "wipes", "views", "reads", "destroys", "changes", "silent", "denied", "none"}
	arguments := []string{`{}`, `{"n":1}`, `{"n":"1"}`, selectArgs, dropArgs, `{"sql":"INSERT INTO x VALUES (1)"}`, `[1]`}
	refused, other := 0, 0
	for _, mode := range []policy.ArgumentEffectMode{policy.ArgumentsOff, policy.ArgumentsAdvise, policy.ArgumentsEnforce} {
		for _, require := range []bool{false, true} {
			lanes := laneWorlds(t, func(c *config.Config) {
				enforced(c)
				c.Intent.JudgeArguments, c.Intent.RequireIntent = mode, require
				c.Servers[0].DisabledTools = []string{"denied"}
			}, definitions...)
			for v, w := range lanes {
				for _, name := range names {
					for _, args := range arguments {
						w.Begun, w.Appended = nil, nil
						a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"s__`+name+`","arguments":`+args+`}`))
						got, text := refusal(a)
						records := append(w.Begun, w.Appended...)
						w.Begun, w.Appended = nil, nil
						_, err := w.all.Gate.Call(t.Context(), LaneCall{CallTool: v, Name: "s:" + name, Args: json.RawMessage(args), Caller: anAgent,
							Declared: policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: v.Operation().String()}})
						want := problem.Code("")
						if err != nil {
							want = problem.From(err).Code
						}
						if got != want {
							t.Fatalf("%s require_intent %v: %s %s %s is %q (%s), by the call tool %q", mode, require, v, name, args, got, text, want)
						}
						of := append(w.Begun, w.Appended...)
						if len(records) != 1 || len(of) != 1 {
							t.Fatalf("%s %s %s: %d and %d records", v, name, args, len(records), len(of))
						}
						one, two := records[0].Metadata, of[0].Metadata
						if one.ToolVariant != v.String() || one.Intent.OperationType != two.Intent.OperationType || one.Decision.Check != two.Decision.Check ||
							one.Decision.Outcome != two.Decision.Outcome || one.Decision.Called != two.Decision.Called || len(one.Warnings) != len(two.Warnings) {
							t.Fatalf("%s %s %s: the records are\n%+v %+v\n%+v %+v", v, name, args, one, one.Decision, two, two.Decision)
						}
						if got == problem.ServerMismatch || got == problem.ArgumentMismatch {
							refused++
							if !strings.Contains(text, "use /mcp/all/") || !strings.Contains(text, "instead of /mcp/all/"+v.Operation().String()) || strings.Contains(text, "call_tool") {
								t.Errorf("refusal at the endpoint of a lane: %s", text)
							}
						} else if got != "" {
							other++
						}
					}
				}
			}
		}
	}
	if refused < 50 || other < 100 {
		t.Errorf("only %d and %d refusals, the test covers too little", refused, other)
	}
}

// TestLanesOfAProfile checks that a refusal names the endpoint of the profile.
func TestLanesOfAProfile(t *testing.T) {
	w := laneWorlds(t, nil, aggregateDeletes)[policy.CallToolRead]
	r := catalogtest.NewRequest("tools/call", `{"name":"s__deletes"}`)
	caller := *r.Caller
	caller.Bounds = within(policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Profile: "work", Servers: []string{"s"}})))
	r.Caller = &caller
	if _, text := refusal(w.do(t.Context(), r)); !strings.Contains(text, "use /mcp/p/work/all/destructive instead of /mcp/p/work/all/read") {
		t.Error(text)
	}
}

// TestPromptsAreInTheReadLane checks that prompts and resources are in the read lane, so that a client of all three
// lane endpoints gets them once.
func TestPromptsAreInTheReadLane(t *testing.T) {
	lanes := laneWorlds(t, nil, aggregateReads)
	for v, w := range lanes {
		has := v == policy.CallToolRead
		a := w.do(t.Context(), catalogtest.NewRequest("server/discover", "{}"))
		capabilities := wirejson.Find(a.Result, "capabilities")
		if (wirejson.Find(capabilities, "prompts") != nil) != has || (wirejson.Find(capabilities, "resources") != nil) != has || wirejson.Find(capabilities, "tools") == nil {
			t.Errorf("%s has the capabilities %s", v, capabilities)
		}
		for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
			if a := w.do(t.Context(), catalogtest.NewRequest(method, "{}")); (a.Error == nil) != has {
				t.Errorf("%s %s: %v", v, method, a.Error)
			}
		}
		for _, method := range []string{"prompts/get", "resources/read", "completion/complete"} {
			if a := w.do(t.Context(), catalogtest.NewRequest(method, `{"name":"s__x","uri":"s:x"}`)); !has && (a.Error == nil || a.Error.Code != wirejson.CodeMethodNotFound) {
				t.Errorf("%s %s: %s %v", v, method, a.Result, a.Error)
			}
		}
	}
}

// TestRequiredIntentWithoutAField checks that a call that must declare an intent is refused at endpoints where the
// caller cannot declare one.
func TestRequiredIntentWithoutAField(t *testing.T) {
	w, _ := allWorld(t, func(c *config.Config) { c.Intent.RequireIntent = true }, aggregateReads)
	if got, text := refusal(w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"s__reads","arguments":{"a":1}}`))); got != problem.MissingIntent || text == "" {
		t.Errorf("/mcp/all: %s %s", got, text)
	}
	_, err := w.all.Gate.GatedEndpoint("s").Do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"reads","arguments":{"a":1}}`))
	p := problem.From(err)
	if err == nil || p.Code != problem.MissingIntent || !strings.Contains(p.Hint, "/mcp/all/read") {
		t.Errorf("/mcp/servers/s: %v", err)
	}
}
