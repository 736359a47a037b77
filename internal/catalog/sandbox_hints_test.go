package catalog

import (
	"fmt"
	"math/rand"
	"testing"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream/sandbox"
)

// TestSandboxHints compares 1,000 random combinations of declared hints, overrides, inference, sandboxes and lanes with
// a plain rule. No tool gets a laxer lane than the rule.
func TestSandboxHints(t *testing.T) {
	r := rand.New(rand.NewSource(34))
	three := func() tool.TriBool { return tool.TriBool(r.Intn(3)) }
	pick := func(all ...string) string { return all[r.Intn(len(all))] }
	annotations := func(h tool.Hints) string { return string(h.AppendJSON(nil)) }
	for i := range 1000 {
		declared := tool.Hints{ReadOnly: three(), Destructive: three(), OpenWorld: three()}
		if r.Intn(2) == 0 {
			declared.ReadOnly, declared.Destructive = tool.Unset, tool.Unset
		}
		var override tool.Hints
		if r.Intn(3) == 0 {
			override = tool.Hints{ReadOnly: three(), Destructive: three(), OpenWorld: three()}
		}
		server := config.Server{Name: "s", TrustSandbox: r.Intn(4) > 0, Sandbox: sandbox.Rules{
			Mode: sandbox.Mode(pick("", "off", "on", "strict", "strict", "container")), Network: sandbox.Network(pick("", "none", "none", "all")), BestEffort: r.Intn(5) == 0}}
		if r.Intn(3) == 0 {
			server.Sandbox.Write = []string{"/a"}
		}
		if override != (tool.Hints{}) {
			server.HintOverrides = []config.HintOverride{{Pattern: pick("*", "no_match"), Hints: override}}
			if server.HintOverrides[0].Pattern != "*" {
				override = tool.Hints{}
			}
		}
		if r.Intn(4) == 0 {
			server.Lanes = []config.ArgumentLaneRule{{Pattern: "*", By: policy.ByAction, Argument: "$.x", Destructive: []string{"a"}}}
		}
		infer := policy.InferMode(pick("off", "advise", "enforce"))
		name := pick("get_user", "delete_user", "create_user", "frobnicate")
		e := newAnalyzedTool(define(t, "s", fmt.Sprintf(`{"name":%q,"annotations":%s}`, name, annotations(declared))), scan.NewCrossRefIndex())
		got := newConfiguredTool(server, infer, e)

		// The rule, in plain words.
		plain := server
		plain.TrustSandbox = false
		without := newConfiguredTool(plain, infer, e)
		box := server.Sandbox
		proves := server.TrustSandbox && (box.Mode == "on" || box.Mode == "strict" || box.Mode == "container") && box.Network != "all" && !box.BestEffort
		said := declared.ReadOnly != tool.Unset || declared.Destructive != tool.Unset || override.ReadOnly != tool.Unset || override.Destructive != tool.Unset
		guess := e.classification.InferredHints()
		clearlyMore := infer == policy.InferEnforce && !guess.Unsure && guess.Operation != policy.Read && guess.Operation != policy.NoOperation
		lane, from := without.CallWith, ""
		if proves && len(box.Write) == 0 && !said && !clearlyMore {
			lane, from = policy.CallToolRead, "sandbox"
		}
		world := without.Effective.OpenWorld
		if proves && world == tool.Unset {
			world = tool.False
		}
		text := fmt.Sprintf("%d: %s, override %s, %s, infer %s, %+v, trusted %v", i, annotations(declared), annotations(override), name, infer, box, server.TrustSandbox)
		if got.CallWith != lane || got.Effective.OpenWorld != world {
			t.Errorf("%s: %s and open world %v, want %s and %v", text, got.CallWith, got.Effective.OpenWorld, lane, world)
		}
		if got.Effective.Destructive != without.Effective.Destructive && without.Effective.Destructive == tool.True && said {
			t.Errorf("%s: destructiveHint is lost", text)
		}
		facts := got.FactsForActivityRecord()
		if by := facts.Hints.ReadOnly; from != "" && (by == nil || by.From != tool.FromSandbox || !by.Value) || from == "" && by != nil && by.From == tool.FromSandbox {
			t.Errorf("%s: the source is %+v", text, by)
		}
		var back tool.DecisionFacts
		back.ReadRecordMember([]byte("hints"), []byte(`"`+compactHints(facts)+`"`))
		if back.Hints == nil || back.Hints.ReadOnly != nil && *back.Hints.ReadOnly != *facts.Hints.ReadOnly {
			t.Errorf("%s: the record has %+v", text, back.Hints)
		}
		if declaredLane := got.IsInLane(policy.CallToolRead) && lane != policy.CallToolRead; declaredLane && len(server.Lanes) == 0 {
			t.Errorf("%s: it is in the read lane", text)
		}
	}
}

// compactHints returns the hints as activity records have them.
func compactHints(j tool.DecisionFacts) string {
	const begin = `,"hints":"`
	text := string(j.AppendRecordMembers(nil))
	return text[len(begin) : len(begin)+4]
}
