package gate

import (
	"encoding/json"
	"fmt"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
)

// discardLog is an ActivityLog that discards every record.
type discardLog struct{}

func (discardLog) Begin(r *activity.Record) error       { r.ID = "record"; return nil }
func (discardLog) End(string, activity.Outcome) error   { return nil }
func (discardLog) AppendRefusal(*activity.Record) error { return nil }

// BenchmarkCall measures the gate's work for a call, without writing its record.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b, nil, readsTool)
	w.gate.Log = discardLog{}
	b.ReportAllocs()
	for b.Loop() {
		w.Events = w.Events[:0]
		_, err := w.gate.Call(b.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// readsCall returns a call of the tool reads through a call tool. Its arguments have not been classified.
func (w *world) readsCall() (*call, resolvedCall, *catalog.Snapshot) {
	now := w.Catalog.Current()
	s := resolvedCall{cfg: w.Config(), request: policy.CallRequest{CallTool: policy.CallToolRead}}
	s.findTool(now, "s:reads", anAgent.Scope())
	return &call{callOptions: callOptions{DeclaresIntent: true}, caller: anAgent}, s, now
}

// bounded are bounds that never change.
type bounded policy.Scope

func (b bounded) Scope() policy.Scope { return policy.Scope(b) }

// BenchmarkDecide collects the facts and decides about a call: for a caller without limits, and for callers with a token, a
// profile, and an endpoint.
func BenchmarkDecide(b *testing.B) {
	w := newWorld(b, nil, readsTool)
	rule := func() *policy.ScopeRule {
		return policy.NewScopeRule(policy.ScopeLimits{Servers: []string{"github", "web-*", "s"}, Lanes: []string{"read", "write"},
			Tools: []policy.ScopeTools{{Server: "s", Patterns: []string{"list_*", "get_*", "rea*"}}}})
	}
	for _, of := range []struct {
		name  string
		scope policy.Scope
	}{{"without a scope", policy.Scope{}}, {"token", policy.NewScope(rule())}, {"token, profile and address", policy.NewScope(rule(), rule(), rule())}} {
		b.Run(of.name, func(b *testing.B) {
			c, s, now := w.readsCall()
			if of.scope.IsBounded() {
				c.caller.Bounds = bounded(of.scope)
			}
			b.ReportAllocs()
			for b.Loop() {
				if v := w.gate.decide(c, s, now); v.Problem != nil {
					b.Fatal(v.Problem)
				}
			}
		})
	}
}

// TestDecidingAllocatesNothing checks that deciding allocates nothing, also with a scope.
func TestDecidingAllocatesNothing(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	for name, bounds := range map[string]auth.Bounds{"without": nil, "with": bounded(policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Servers: []string{"s"}, Lanes: []string{"read"}})))} {
		c, s, now := w.readsCall()
		c.caller.Bounds = bounds
		if n := testing.AllocsPerRun(100, func() { _ = w.gate.decide(c, s, now) }); n != 0 {
			t.Errorf("%s a scope: %v allocations", name, n)
		}
	}
}

// uncaught returns a call that needs no approval, with many rules and servers.
func uncaught(t testing.TB) (*world, *call, verdict) {
	w := newWorld(t, func(c *config.Config) {
		for i := range 100 {
			c.Servers = append(c.Servers, config.Server{Name: fmt.Sprint("server-", i), Enabled: true})
		}
		c.Servers = append(c.Servers[1:], c.Servers[0])
		c.Ask = policy.AskRules{Write: policy.AskOn, Destructive: policy.AskOn, Tools: map[string]string{"server-1:*": "ask", "*:delete_*": "ask", "s:other": "off"}}
		c.Servers[100].Ask = policy.AskRules{Tools: map[string]string{"wipe": "ask"}}
	}, readsTool)
	c, s, now := w.readsCall()
	v := w.gate.decide(c, s, now)
	if v.Problem != nil {
		t.Fatal(v.Problem)
	}
	return w, c, v
}

// BenchmarkNoApprovalNeeded decides that a call needs no approval.
func BenchmarkNoApprovalNeeded(b *testing.B) {
	w, c, v := uncaught(b)
	b.ReportAllocs()
	for b.Loop() {
		if v, _ := w.gate.awaitApproval(b.Context(), c, v, nil); v.Problem != nil {
			b.Fatal(v.Problem)
		}
	}
}

// TestNoApprovalAllocatesNothing checks that a call that needs no approval allocates nothing, even if rules exist.
func TestNoApprovalAllocatesNothing(t *testing.T) {
	w, c, v := uncaught(t)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = w.gate.awaitApproval(ctx, c, v, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
