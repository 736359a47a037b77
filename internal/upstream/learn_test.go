//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcptest"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// TestLearn: what a server lists to its clients alone belongs to its tools, what
// it lists to us goes first, and we do not call what is not for us.
func TestLearn(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.Define("own")})
	f := newFixture(t)
	f.Apply([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	listed := func(want ...string) {
		t.Helper()
		f.until(t, fmt.Sprint("the tools are ", want), func() bool {
			l := f.find("s").presence.live.Load()
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
		if got := f.Learn("s", raws); got != want {
			t.Errorf("news of %q: %t", definitions, got)
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
	sv, err := f.Server(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	passed := session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"theirs"}`),
		Judged: session.Judge("theirs", own.Listed, func() error { return nil })}
	if r, err := sv.Try(t.Context(), &passed, func(c *Connection) (session.Reply, error) { return c.Do(t.Context(), &passed) }); err != nil || r.Error == nil || !strings.Contains(r.Error.Message, "Unknown tool") {
		t.Errorf("it was not passed on: %+v %v", r, err)
	}

	s.SetTools(mcptest.Tool{Definition: mcptest.Define("own")}, mcptest.Tool{Definition: mcptest.Define("theirs")})
	listed("own", "theirs")
	s.SetTools(mcptest.Tool{Definition: mcptest.Define("own")})
	listed("own") // it is gone for good
	learn(true, `{"name":"theirs"}`)
	listed("own", "theirs")
	f.Restart("s")
	listed("own")

	fresh := newListing()
	for i := range maxLearnt + 10 {
		fresh.learn(tool.Definition{ID: tool.ID{Server: "s", Tool: fmt.Sprint(i)}})
	}
	if len(fresh.learnt) != maxLearnt {
		t.Errorf("%d are remembered", len(fresh.learnt))
	}
	if f.Learn("none", nil) {
		t.Error("news of no server")
	}
}
