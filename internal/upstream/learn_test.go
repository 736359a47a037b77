//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// TestLearn: tools that a server lists only to its clients are part of its tools. The list for MCPProxy takes
// precedence, and MCPProxy itself does not call the tools for clients.
func TestLearn(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("own")})
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	listed := func(want ...string) {
		t.Helper()
		f.until(t, fmt.Sprint("the tools are ", want), func() bool {
			l := f.find("s").availability.live.Load()
			if l == nil {
				return false
			}
			var names []string
			for name, d := range l.tools.Load().all {
				if strings.Contains(string(d.Raw), `"title":"second"`) {
					name += " second"
				}
				names = append(names, name)
			}
			slices.Sort(names)
			return slices.Equal(names, want)
		})
	}
	learn := func(want bool, definitions ...string) {
		t.Helper()
		var raws []json.RawMessage
		for _, d := range definitions {
			raws = append(raws, json.RawMessage(d))
		}
		if got := f.AddDefinitions("s", raws); got != want {
			t.Errorf("AddDefinitions(%q) = %t", definitions, got)
		}
	}
	listed("own")
	learn(false, `{"name":"own","title":"second"}`, `7`, `{"name":""}`)
	learn(true, `{"name":"own","title":"second"}`, `{"name":"theirs"}`)
	listed("own", "theirs")
	learn(false, `{"name":"theirs"}`)
	learn(true, `{"name":"theirs","title":"second"}`)
	listed("own", "theirs second")

	own := Call{Tool: "theirs", Listed: json.RawMessage(`{"name":"theirs","title":"second"}`)}
	_, err := f.Call(t.Context(), "s", own)
	if p := wantCode(t, err, problem.ServerUnavailable); !strings.Contains(p.Hint, "/mcp/servers/s") {
		t.Errorf("%+v", p)
	}
	sv, err := f.ServerForRequest(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	passed := session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"theirs"}`),
		Permit: session.NewToolCallPermit("theirs", own.Listed, func() error { return nil })}
	if r, err := sv.SendWhenReady(t.Context(), &passed, func(c *Connection) (session.Reply, error) { return c.Do(t.Context(), &passed) }); err != nil || r.Error == nil || !strings.Contains(r.Error.Message, "Unknown tool") {
		t.Errorf("the call was not forwarded: %+v %v", r, err)
	}

	s.SetTools(mcptest.Tool{Definition: mcptest.ToolDefinition("own")}, mcptest.Tool{Definition: mcptest.ToolDefinition("theirs")})
	listed("own", "theirs")
	s.SetTools(mcptest.Tool{Definition: mcptest.ToolDefinition("own")})
	listed("own") // the tool was removed
	learn(true, `{"name":"theirs"}`)
	listed("own", "theirs")
	f.Restart("s")
	listed("own")

	fresh := newToolListTracker()
	for i := range maxClientTools + 10 {
		fresh.addClientTool(tool.Definition{ID: tool.ID{Server: "s", Tool: fmt.Sprint(i)}})
	}
	if len(fresh.clientTools) != maxClientTools {
		t.Errorf("%d client tools are stored", len(fresh.clientTools))
	}
	if f.AddDefinitions("none", nil) {
		t.Error("AddDefinitions reports new tools of an unknown server")
	}
}

// replacing is an Observer that replaces all definitions with equal copies.
type replacing struct{ Observer }

func (r replacing) ToolsListed(server string, tools []*tool.Definition) {
	for i, d := range tools {
		own := *d
		tools[i] = &own
	}
	r.Observer.ToolsListed(server, tools)
}

// TestTheObserversDefinitionsAreKept: if the observer replaces a definition by its own equal one, the server keeps only
// that one.
func TestTheObserversDefinitionsAreKept(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("own")})
	f := newFixture(t, func(o *Options) { o.Observer = replacing{o.Observer} })
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	if !f.AddDefinitions("s", []json.RawMessage{json.RawMessage(`{"name":"theirs"}`)}) {
		t.Fatal("the definition is not new")
	}
	f.until(t, "both tools are listed", func() bool { return len(f.lastTools("s")) == 2 })
	f.RefreshTools(t.Context(), "s", time.Now())
	kept := f.find("s").availability.live.Load().tools.Load()
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	lists := f.lists["s"]
	told := lists[len(lists)-1]
	if len(lists) < 3 || len(told) != 2 || len(kept.own) != 1 || kept.own[0] != told[0] || kept.all["own"] != told[0] || kept.all["theirs"] != told[1] || !told[1].ForClients {
		t.Errorf("stored %v, observer has %v, after %d lists", kept, told, len(lists))
	}
}
