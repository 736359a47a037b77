package gate

import (
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// scopeChanges are limits that change while a call waits.
type scopeChanges struct{ now policy.Scope }

func (n *scopeChanges) Scope() policy.Scope { return n.now }

// TestWaitingCallObeysItsScope checks that the scope at the time of sending decides, not the scope at the time of the
// request.
func TestWaitingCallObeysItsScope(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	n := &scopeChanges{}
	c, s, _ := w.readsCall()
	c.caller.Bounds = n
	var again rechecker
	again.initFor(w.gate, c, &verdict{resolvedCall: s}, nil)
	if err := again.decideAgain(); err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]policy.ScopeLimits{
		"another server": {Servers: []string{"t"}}, "no tool": {Tools: []policy.ScopeTools{{Server: "s"}}}, "another lane": {Lanes: []string{"write"}}, "nothing": {Servers: []string{}},
	} {
		n.now = policy.NewScope(policy.NewScopeRule(limits))
		if err := again.decideAgain(); problem.From(err).Code != problem.OutOfScope {
			t.Errorf("%s: %v", name, err)
		}
	}
}
