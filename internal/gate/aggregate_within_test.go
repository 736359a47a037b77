package gate

import (
	"slices"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream"
)

// within are bounds that never change.
type within policy.Scope

func (w within) Scope() policy.Scope { return policy.Scope(w) }

// TestChangesOutsideTheScopeAreHidden checks that a caller with a scope is notified only of changes inside the scope.
// For this caller, tools outside do not exist.
func TestChangesOutsideTheScopeAreHidden(t *testing.T) {
	w, _ := allWorld(t, nil, `{"name":"a","annotations":{"destructiveHint":false}}`)
	asked := func() *session.Request {
		r := catalogtest.NewRequest("", "")
		caller := *r.Caller
		caller.Bounds = within(policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Servers: []string{"s"}, Lanes: []string{"read", "write"}})))
		r.Caller = &caller
		return r
	}
	list := func(server string, names ...string) {
		var all []*tool.Definition
		for _, name := range names {
			d, err := tool.ParseDefinition(server, []byte(`{"name":"`+name+`","annotations":{"destructiveHint":`+map[bool]string{true: "true", false: "false"}[name == "wipe"]+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &d)
		}
		w.Catalog.ToolsListed(server, all)
		w.Catalog.Publish()
	}
	list("s", "a")
	before, _ := w.all.currentListDigests(asked())
	whole, _ := w.all.currentListDigests(catalogtest.NewRequest("", ""))
	list("t", "b", "c")
	w.Catalog.StateChanged(upstream.State{Name: "t", Phase: upstream.Ready, PrimitivesVersion: 99, Capabilities: []byte(`{"tools":{},"prompts":{},"resources":{}}`)})
	list("s", "a", "wipe") // outside the client's lanes
	after, _ := w.all.currentListDigests(asked())
	if after != before {
		t.Error("a change outside the scope is announced")
	}
	if now, _ := w.all.currentListDigests(catalogtest.NewRequest("", "")); now == whole {
		t.Fatal("the catalog did not change, so the test checks nothing")
	}
	list("s", "a", "d")
	if now, _ := w.all.currentListDigests(asked()); now == after {
		t.Error("a change inside the scope is not announced")
	}
	var names []string
	for _, e := range w.all.toolTableForCaller(asked()).callable {
		names = append(names, e.name)
	}
	if !slices.Equal(names, []string{"s__a", "s__d"}) {
		t.Errorf("%v", names)
	}
}
