//go:build unix

package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// offering is a proxy that replaces a server's lists: two pages of prompts, endless resources, and templates that are
// not a list.
type offering struct{ http.Handler }

func (o offering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	method, _ := wirejson.String(wirejson.Find(body, "method"))
	result := ""
	switch cursor := string(wirejson.Find(wirejson.Find(body, "params"), "cursor")); {
	case method == "prompts/list" && cursor == "":
		result = `{"prompts":[{"name":"a","x":9007199254740993}],"nextCursor":"1"}`
	case method == "prompts/list" && cursor == `"1"`:
		result = `{"prompts":[{"name":"b"}, 7],"nextCursor":""}`
	case method == "resources/list":
		result = `{"resources":[` + strings.Repeat(`{"uri":"x://y"},`, 999) + `{}],"nextCursor":"more than ` + strings.Trim(cursor, `"`) + `"}`
	case method == "resources/templates/list":
		result = `{"resourceTemplates":{}}`
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		o.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, wirejson.Find(body, "id"), result)
}

// TestListPrimitives: all pages of a server's lists arrive byte for byte, within limits. No other method can be sent
// this way.
func TestListPrimitives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := mcptest.New(mcptest.Options{})
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, offering{server}).URL}})
	items, err := f.ListPrimitives(t.Context(), "s", "prompts/list", "prompts")
	if err != nil || fmt.Sprintf("%s", items) != `[{"name":"a","x":9007199254740993} {"name":"b"} 7]` {
		t.Errorf("%s %v", items, err)
	}
	for _, c := range []struct{ server, method, list, want string }{
		{"s", "resources/list", "resources", "more than 20000 elements"},
		{"s", "resources/templates/list", "resourceTemplates", "no list of resourceTemplates"},
		{"none", "prompts/list", "prompts", "is not started"},
		{"s", "tools/call", "content", "must be a request of its own"},
		{"s", "tools/list", "tools", "must be a request of its own"},
	} {
		if items, err := f.ListPrimitives(t.Context(), c.server, c.method, c.list); err == nil || !strings.Contains(err.Error(), c.want) || problem.From(err) == nil {
			t.Errorf("%s: %d elements, %v", c.method, len(items), err)
		} else if answered := c.server == "s" && strings.HasPrefix(c.method, "resources/"); ServerAnswered(err) != answered || (len(items) > 0) != (c.method == "resources/list") {
			t.Errorf("%s: ServerAnswered = %v, %d elements", c.method, ServerAnswered(err), len(items))
		}
	}
	refusing := mcptest.New(mcptest.Options{})
	f.ApplySpecs([]Spec{{Name: "r", Transport: HTTP, URL: mcptest.Serve(t, refusing).URL}})
	if items, err := f.ListPrimitives(t.Context(), "r", "prompts/list", "prompts"); !ServerAnswered(err) || len(items) > 0 {
		t.Errorf("a server that refuses the list: %d elements, %v", len(items), err)
	}
	if calls := server.Received("tools/call"); len(calls) > 0 {
		t.Errorf("called %s", calls)
	}
}

// TestPrimitivesChange: changes of prompts and resources, and a new connection, are noticed on the shared connection.
func TestPrimitivesChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := mcptest.New(mcptest.Options{})
	f.ApplySpecs([]Spec{httpSpec(t, "s", server)})
	f.untilReady(t, "s", 0)
	offers := func() uint64 {
		st, _ := f.State("s")
		return st.PrimitivesVersion
	}
	was := offers()
	if was == 0 {
		t.Error("no version of the primitives")
	}
	for _, method := range []string{mcp.PromptsChanged, mcp.ResourcesChanged} {
		f.until(t, method+" is noticed", func() bool {
			server.Broadcast(method, nil) // the server keeps it until the stream is open
			return f.last("s").PrimitivesVersion != was
		})
		was = offers()
	}
	if err := f.Restart("s"); err != nil {
		t.Fatal(err)
	}
	f.untilReady(t, "s", 1)
	if offers() == was {
		t.Error("a new connection does not change the version")
	}
}
