package gate

import (
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// narrowing are bounds that change while a call waits.
type narrowing struct{ now policy.Scope }

func (n *narrowing) Scope() policy.Scope { return n.now }

// TestACallThatWaitsIsHeldToItsScope: the scope of that moment decides, not that of
// when the call came.
func TestACallThatWaitsIsHeldToItsScope(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	n := &narrowing{}
	c := &call{options: options{Declares: true}, gate: w.gate, cfg: w.Config(), caller: anAgent, policyRequest: policy.Request{Variant: policy.CallToolRead}}
	c.caller.Bounds = n
	c.name(w.Catalog.Current(), "s:reads")
	if err := c.recheck(); err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]policy.ScopeLimits{
		"another server": {Servers: []string{"t"}}, "no tool": {Tools: []policy.ScopeTools{{Server: "s"}}}, "another lane": {Lanes: []string{"write"}}, "nothing": {Servers: []string{}},
	} {
		n.now = policy.ScopeOf(policy.NewScopeRule(limits))
		if err := c.recheck(); problem.From(err).Code != problem.OutOfScope {
			t.Errorf("%s: %v", name, err)
		}
	}
}
