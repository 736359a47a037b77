package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
	"mcpproxy/internal/upstream"
)

// staleAfter is the time for which lists stay valid. lostAfter is the time after which a list that could not be read
// is requested again. See package catalog.
const staleAfter, lostAfter = 10 * time.Second, 30 * time.Second

func keysOf(t *testing.T, p page, key string) []string {
	t.Helper()
	var all []string
	for _, raw := range p.items {
		name, ok := wirejson.String(wirejson.Find(raw, key))
		if !ok {
			t.Errorf("member %s is missing in %s", key, raw)
		}
		all = append(all, name)
	}
	return all
}

// listAll returns the elements of all pages.
func listAll(w *aggregateWorld, method string) (all []json.RawMessage, pages int) {
	w.T.Helper()
	for cursor := ""; ; {
		p, a := w.page(method, cursor)
		if a.Error != nil {
			w.T.Fatal(a.Error)
		}
		all = append(all, p.items...)
		pages++
		if cursor = p.next; cursor == "" {
			return all, pages
		}
	}
}

// TestAllTools checks that the list on /mcp/all contains the callable tools under their names on that endpoint. The
// rest of a definition consists of the server's bytes, except for corrected hints.
func TestAllTools(t *testing.T) {
	const odd = `{"vendor":{"n":9007199254740993},  "\u006eame":"a__b","annotations":{"title":"x", "readOnlyHint":true,"v":1},"inputSchema":{"type":"object"}}`
	w, _ := allWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		c.Servers[0].HintOverrides = []config.HintOverride{
			{Pattern: "deletes", Hints: tool.Hints{Destructive: tool.False, OpenWorld: tool.True}},
			{Pattern: "bare", Hints: tool.Hints{ReadOnly: tool.True}},
		}
	}, aggregateReads, aggregateDeletes, aggregateDenied, odd, `{"name":"bare"}`, `{"name":"x/y"}`)
	p, a := w.page("tools/list", "")
	want := []string{
		strings.Replace(odd, `"a__b"`, `"s__a__b"`, 1),
		`{"name":"s__bare","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"s__deletes","annotations":{"destructiveHint":false,"openWorldHint":true},"inputSchema":{"type":"object"}}`,
		strings.Replace(aggregateReads, `"reads"`, `"s__reads"`, 1),
		`{"name":"` + tool.ToAlias("s", "x/y") + `","inputSchema":{"type":"object"}}`,
	}
	if a.Error != nil || p.next != "" || len(p.items) != len(want) {
		t.Fatalf("%s %v", p.items, a.Error)
	}
	for i := range want {
		if string(p.items[i]) != want[i] {
			t.Errorf("got  %s\nwant %s", p.items[i], want[i])
		}
	}
	nobody := catalogtest.NewRequest("tools/list", "{}")
	nobody.Caller = &auth.Caller{}
	if a := w.do(t.Context(), nobody); string(wirejson.Find(a.Result, "tools")) != "[]" {
		t.Errorf("a caller without an identity sees %s", a.Result)
	}
}

// TestAllToolsInferred checks that, with infer_hints: enforce, the list contains the inferred hints as effective
// hints.
func TestAllToolsInferred(t *testing.T) {
	w, _ := allWorld(t, func(c *config.Config) { c.Intent.InferHints = policy.InferEnforce },
		`{"name":"delete_user","description":"Deletes a user for good."}`, `{"name":"list_users","description":"Lists the users."}`)
	all, _ := listAll(w, "tools/list")
	if len(all) != 2 || string(wirejson.Find(all[0], "annotations")) != `{"readOnlyHint":false,"destructiveHint":true}` ||
		!strings.Contains(string(wirejson.Find(all[1], "annotations")), `"readOnlyHint":true`) {
		t.Errorf("%s", all)
	}
}

// TestAllRealTools checks that the tools of real servers are unchanged except for their names.
func TestAllRealTools(t *testing.T) {
	volume.SkipUnderRace(t)
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	files, _ := filepath.Glob(filepath.Join(shared, "real-servers/*.tools.json"))
	if len(files) == 0 {
		t.Skip("the tools of the real servers are missing, set MCPPROXY_SHARED")
	}
	total := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		raws := make([]string, len(list.Tools))
		sent := map[string]json.RawMessage{}
		for i, raw := range list.Tools {
			raws[i] = string(raw)
			name, _ := wirejson.String(wirejson.Find(raw, "name"))
			sent["s__"+name] = raw
		}
		w, _ := allWorld(t, nil, raws...)
		all, _ := listAll(w, "tools/list")
		for _, raw := range all {
			name, _ := wirejson.String(wirejson.Find(raw, "name"))
			if back := bytes.Replace(raw, []byte(`"s__`), []byte(`"`), 1); sent[name] == nil || !bytes.Equal(back, sent[name]) {
				t.Errorf("the definition of %s changed: %.300s", name, raw)
			}
		}
		total += len(all)
		if len(all) != len(list.Tools) {
			t.Errorf("%s: %d of %d tools", file, len(all), len(list.Tools))
		}
	}
	if total < 700 {
		t.Errorf("only %d tools", total)
	}
	t.Logf("%d tools of %d servers", total, len(files))
}

// TestAllPages checks that ten thousand tools are listed in pages, each tool once and in order, even if the tools
// change between two pages.
func TestAllPages(t *testing.T) {
	volume.SkipUnderRace(t)
	var raws []string
	for i := range 10_000 {
		raws = append(raws, fmt.Sprintf(`{"name":"tool_%d","description":"does %d"}`, i*7919%10_000, i))
	}
	w, _ := allWorld(t, nil, raws...)
	all, pages := listAll(w, "tools/list")
	got := keysOf(t, page{items: all}, "name")
	if len(got) != 10_000 || pages != 10 || !slices.IsSorted(got) || len(slices.Compact(got)) != 10_000 {
		t.Errorf("%d tools on %d pages", len(got), pages)
	}
	first, _ := w.page("tools/list", "")
	last := keysOf(t, first, "name")[len(first.items)-1]
	var fewer []string
	for _, raw := range raws {
		if !strings.Contains(raw, `"`+strings.TrimPrefix(last, "s__")+`"`) {
			fewer = append(fewer, raw)
		}
	}
	w.SetTools(fewer...)
	next, a := w.page("tools/list", first.next)
	if a.Error != nil || keysOf(t, next, "name")[0] != got[1000] {
		t.Errorf("after a change the next page begins with %s, want %s (%v)", keysOf(t, next, "name")[0], got[1000], a.Error)
	}
	for _, bad := range []string{"x", "%", "MTA", encodeCursor(catalog.ListPrompts, "a")} {
		if _, a := w.page("tools/list", bad); code(a) != problem.InvalidParameter {
			t.Errorf("cursor %q: %s", bad, code(a))
		}
	}
	big := make([]string, 30)
	for i := range big {
		big[i] = fmt.Sprintf(`{"name":"big%d","description":%q}`, i, strings.Repeat("x", 250_000))
	}
	w.SetTools(big...)
	if all, pages := listAll(w, "tools/list"); len(all) != 30 || pages != 2 {
		t.Errorf("%d big tools on %d pages", len(all), pages)
	}
}

// TestAllCall checks that a call goes through the gate under the tool's own name, and is refused in the same cases as
// elsewhere.
func TestAllCall(t *testing.T) {
	w, r := allWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
	}, aggregateReads, aggregateDeletes, aggregateDenied, `{"name":"a__b"}`, `{"name":"x/y"}`)
	var sent []session.Request
	w.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		sent = append(sent, *r)
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	for name, own := range map[string]string{"s__reads": "reads", "s__deletes": "deletes", "s__a__b": "a__b", tool.ToAlias("s", "x/y"): "x/y"} {
		w.Begun, sent = nil, nil
		q := catalogtest.NewRequest("tools/call", `{"_meta":{"progressToken":1}, "name":"`+name+`","arguments":{"n":9007199254740993}}`)
		q.Headers = []mcp.Header{{Name: "Mcp-Method", Value: "tools/call"}, {Name: "Mcp-Name", Value: name}}
		a := w.do(t.Context(), q)
		if string(a.Result) != `{"content":[]}` || len(sent) != 1 {
			t.Fatalf("%s: %s %v", name, a.Result, a.Error)
		}
		if got := string(sent[0].Params); got != `{"_meta":{"progressToken":1}, "name":"`+own+`","arguments":{"n":9007199254740993}}` {
			t.Errorf("%s: sent %s", name, got)
		}
		if want := []mcp.Header{{Name: "Mcp-Method", Value: "tools/call"}, {Name: "Mcp-Name", Value: own}}; !slices.Equal(sent[0].Headers, want) {
			t.Errorf("%s: sent with %v", name, sent[0].Headers)
		}
		if b := w.Begun[0]; b.ServerName != "s" || b.ToolName != own || b.Metadata.ToolVariant == "" ||
			name == "s__reads" && b.Metadata.ToolVariant != "call_tool_read" {
			t.Errorf("%s: record %+v", name, b)
		}
	}
	w.Appended, w.Begun = nil, nil
	for params, want := range map[string]problem.Code{
		`{"name":"s__denied"}`:                problem.ToolLocked,
		`{"name":"s__nope"}`:                  problem.ToolNotFound,
		`{"name":"u__nope"}`:                  problem.ServerNotFound,
		`{"name":"reads"}`:                    problem.InvalidName,
		`{"name":"s:reads"}`:                  problem.InvalidName,
		`{"name":"s__s:reads"}`:               problem.InvalidName,
		`{"name":""}`:                         problem.InvalidName,
		`{"name":"s__reads","arguments":[1]}`: problem.InvalidArgs,
	} {
		if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", params)); code(a) != want {
			t.Errorf("%s: %s, want %s", params, code(a), want)
		}
	}
	if len(w.Begun) != 0 || len(w.Appended) != 8 || w.Appended[0].Type != activity.PolicyDecision || len(r.Asked) != 0 {
		t.Errorf("records: %d begun, %d refused; forwarded: %q", len(w.Begun), len(w.Appended), r.Asked)
	}
	if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":7}`)); code(a) != problem.InvalidName {
		t.Errorf("%+v", a)
	}
}

// TestAllMalformed checks that a tool or prompt that the lists omit, because its definition is malformed, is rejected
// with the reason, and stays usable at the endpoint of its server.
func TestAllMalformed(t *testing.T) {
	w, r := allWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"denied"} },
		aggregateReads, `{"name":"bad","inputSchema":{"type":"object","required":"x"}}`, `{"name":"x/y","inputSchema":[1]}`, `{"name":"denied","inputSchema":[1]}`)
	r.Primitives["s prompts/list"] = []json.RawMessage{json.RawMessage(`{"name":"greet"}`), json.RawMessage(`{"name":"bad","arguments":{"x":1}}`)}
	calls := 0
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		calls++
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	tools, _ := w.page("tools/list", "")
	prompts, _ := w.page("prompts/list", "")
	if got := append(keysOf(t, tools, "name"), keysOf(t, prompts, "name")...); !slices.Equal(got, []string{"s__reads", "s__greet"}) {
		t.Errorf("listed: %q", got)
	}
	for _, c := range []struct {
		method, name string
		code         problem.Code
		want         string
	}{
		{"tools/call", "s__bad", problem.InvalidName, "its inputSchema.required is no list"},
		{"tools/call", tool.ToAlias("s", "x/y"), problem.InvalidName, "its inputSchema does not describe an object"},
		{"tools/call", "s__denied", problem.ToolLocked, ""},
		{"prompts/get", "s__bad", problem.InvalidName, "its arguments is no list"},
	} {
		a := w.do(t.Context(), catalogtest.NewRequest(c.method, `{"name":"`+c.name+`"}`))
		if code, message := refusal(a); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%s %s: %s %s", c.method, c.name, code, message)
		}
	}
	if calls != 0 || len(r.Sent) != 0 || len(w.Appended) != 3 {
		t.Errorf("%d calls, sent %q, %d recorded refusals", calls, r.Sent, len(w.Appended))
	}
	if a, err := w.all.Gate.GatedEndpoint("s").Do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"bad"}`)); err != nil || a.Error != nil || calls != 1 {
		t.Errorf("at the endpoint of the server: %+v, %v, %d calls", a, err, calls)
	}
}

// TestAllStrictResults checks that strict clients accept each result, and that structured content that does not fit
// the output schema does not hide a failure. At the endpoint of the server a result keeps its bytes.
func TestAllStrictResults(t *testing.T) {
	w, _ := allWorld(t, nil, `{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}}`)
	var sent string
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(sent)}, nil
	}
	for from, want := range map[string]string{
		`{"content":[{"type":"text","text":"a","annotations":null}], "structuredContent":{"n":1}}`:  `{"content":[{"type":"text","text":"a"}], "structuredContent":{"n":1}}`,
		`{"content":[{"type":"text","text":"boom"}],"isError":true,"structuredContent":{"code":7}}`: `{"content":[{"type":"text","text":"boom"}],"isError":true}`,
		`{"content":[],"isError":true,"structuredContent":{"code":7}}`:                              `{"content":[{"type":"text","text":"{\"code\":7}"}],"isError":true}`,
		`{"content":[],"isError":true, "structuredContent":{"n":7}}`:                                `{"content":[],"isError":true, "structuredContent":{"n":7}}`,
	} {
		sent = from
		if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"s__x"}`)); string(a.Result) != want {
			t.Errorf("%s: %s %v", from, a.Result, a.Error)
		}
		if a, err := w.all.Gate.GatedEndpoint("s").Do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"x"}`)); err != nil || string(a.Result) != from {
			t.Errorf("%s at the endpoint of the server: %s %v", from, a.Result, err)
		}
	}
}

// TestAllPrimitives checks that prompts and resources are routed to their servers. A URI that two servers have is
// prefixed with the name of its server.
func TestAllPrimitives(t *testing.T) {
	w, r := allWorld(t, nil)
	raw := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	r.Primitives["s prompts/list"] = raw(`{"name":"greet","x":1e400}`, `{"name":"odd one"}`, `{"noname":1}`, `{"name":"greet"}`)
	r.Primitives["t prompts/list"] = raw(`{"name":"greet"}`)
	r.Primitives["s resources/list"] = raw(`{"uri":"demo://1"}`, `{"uri":"both://x","name":"X"}`, `{"uri":"mcpproxy://t/demo://2"}`, `{"uri":"users/me"}`, `{"uri":"db://h:port/x"}`, `{"uri":"http:///x"}`)
	r.Primitives["t resources/list"] = raw(`{"uri":"demo://2"}`, `{"uri":"both://x"}`)
	r.Primitives["t resources/templates/list"] = raw(`{"uriTemplate":"t://{id}"}`)
	for _, c := range []struct {
		method string
		key    string
		want   []string
	}{
		{"prompts/list", "name", []string{"s__greet", tool.ToAlias("s", "odd one"), "t__greet"}},
		{"resources/list", "uri", []string{"demo://1", "demo://2", "mcpproxy://s/both://x", "mcpproxy://s/db://h:port/x", "mcpproxy://s/http:///x", "mcpproxy://s/mcpproxy://t/demo://2", "mcpproxy://s/users/me", "mcpproxy://t/both://x"}},
		{"resources/templates/list", "uriTemplate", []string{"t://{id}"}},
	} {
		p, a := w.page(c.method, "")
		if a.Error != nil || !slices.Equal(keysOf(t, p, c.key), c.want) {
			t.Errorf("%s %v", p.items, a.Error)
		}
	}
	for _, c := range []struct{ method, params, want, server string }{
		{"prompts/get", `{"name":"t__greet"}`, `{"name":"greet"}`, "t"},
		{"prompts/get", `{"name":"` + tool.ToAlias("s", "odd one") + `"}`, `{"name":"odd one"}`, "s"},
		{"resources/read", `{"uri":"demo://2"}`, `{"uri":"demo://2"}`, "t"},
		{"resources/read", `{"uri":"mcpproxy://s/both://x"}`, `{"uri":"both://x"}`, "s"},
		{"resources/read", `{"uri":"mcpproxy://s/users/me"}`, `{"uri":"users/me"}`, "s"},
		{"resources/read", `{"uri":"users/me"}`, `{"uri":"users/me"}`, "s"},
		{"resources/read", `{"uri":"mcpproxy://t/anything"}`, `{"uri":"anything"}`, "t"},
		{"resources/read", `{"uri":"mcpproxy://s/mcpproxy://t/demo://2"}`, `{"uri":"mcpproxy://t/demo://2"}`, "s"},
		{"resources/read", `{"uri":"t://7"}`, `{"uri":"t://7"}`, "t"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"s__greet"},"argument":{}}`, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{}}`, "s"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"t://{id}"}}`, `{"ref":{"type":"ref/resource","uri":"t://{id}"}}`, "t"},
	} {
		r.Sent = nil
		if a := w.do(t.Context(), catalogtest.NewRequest(c.method, c.params)); a.Error != nil || len(r.Sent) != 1 ||
			r.Sent[0] != c.server+" "+c.want {
			t.Errorf("%s %s: %v, sent %q", c.method, c.params, a.Error, r.Sent)
		}
	}
	for _, c := range []struct{ method, params, want string }{
		{"resources/read", `{"uri":"both://x"}`, "Several servers have a resource 'both://x'."},
		{"resources/read", `{"uri":"none://x"}`, "The resource 'none://x' does not exist."},
		{"resources/read", `{"uri":"mcpproxy://u/x"}`, "Server 'u' not found"},
		{"resources/read", `{}`, "the uri must be a string"},
		{"prompts/get", `{"name":"greet"}`, "The prompt 'greet' does not exist."},
		{"prompts/get", `{"name":"u__greet"}`, "The prompt 'u__greet' does not exist."},
		{"completion/complete", `{"ref":{"type":"x"}}`, "params.ref must be"},
	} {
		_, message := refusal(w.do(t.Context(), catalogtest.NewRequest(c.method, c.params)))
		if !strings.HasPrefix(message, c.want) {
			t.Errorf("%s %s: %s", c.method, c.params, message)
		}
	}
	if a := w.do(t.Context(), catalogtest.NewRequest("x/y", `{}`)); a.Error == nil || a.Error.Code != -32601 {
		t.Errorf("%+v", a)
	}
}

// TestAllPrimitivesOfAHangingServer checks that a server that hangs delays the combined lists once, not each time,
// and that its earlier list is still included.
func TestAllPrimitivesOfAHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := allWorld(t, nil)
		r.Primitives["s resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"s://1"}`)}
		r.Primitives["t resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"t://1"}`)}
		for _, c := range []struct {
			after time.Duration
			hangs string
			takes time.Duration
		}{
			{0, "", 0}, {0, "t", 0}, {staleAfter, "t", listTime}, {0, "t", 0}, {lostAfter - time.Second, "t", 0},
			{2 * time.Second, "t", listTime}, {0, "", 0}, {lostAfter + time.Second, "", 0},
		} {
			time.Sleep(c.after)
			r.HangingServer = c.hangs
			start := time.Now()
			p, a := w.page("resources/list", "")
			if got := time.Since(start); a.Error != nil || got != c.takes || !slices.Equal(keysOf(t, p, "uri"), []string{"s://1", "t://1"}) {
				t.Errorf("%+v: %s after %v, %v", c, p.items, got, a.Error)
			}
		}
	})
}

// TestListedNow checks that the digests of the lists change when the lists change, and only then.
func TestListedNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := allWorld(t, nil, aggregateReads)
		before, again := w.all.currentListDigests(catalogtest.NewRequest("", ""))
		w.Catalog.StateChanged(upstream.State{Name: "other"})
		w.Catalog.Publish()
		<-again
		same, again := w.all.currentListDigests(catalogtest.NewRequest("", ""))
		if same != before {
			t.Error("the digests changed without a change of the lists")
		}
		w.SetTools(aggregateReads, aggregateDeletes)
		<-again
		tools, again := w.all.currentListDigests(catalogtest.NewRequest("", ""))
		if tools[0] == before[0] || tools[1] != before[1] || tools[2] != before[2] {
			t.Error("not exactly the digest of the tools changed")
		}
		w.Catalog.StateChanged(upstream.State{Name: "t", Phase: upstream.Ready, PrimitivesVersion: 9, Capabilities: json.RawMessage(`{"prompts":{}}`)})
		w.Catalog.Publish()
		<-again
		if now, _ := w.all.currentListDigests(catalogtest.NewRequest("", "")); now[0] != tools[0] || now[1] == tools[1] || now[2] == tools[2] {
			t.Error("not exactly the digests of prompts and resources changed")
		}
		if got := w.all.mergedCapabilitiesJSON(catalogtest.NewRequest("", "")); got != `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true},"extensions":{"io.modelcontextprotocol/ui":{}}}` {
			t.Errorf("merged capabilities: %s", got)
		}
		w.Catalog.StateChanged(upstream.State{Name: "t", Phase: upstream.Connecting})
		w.Catalog.Publish()
		if got := w.all.mergedCapabilitiesJSON(catalogtest.NewRequest("", "")); got != `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true},"completions":{},"logging":{},"extensions":{"io.modelcontextprotocol/ui":{}}}` {
			t.Errorf("merged capabilities with an unknown server: %s", got)
		}
	})
}

func TestAskedBy(t *testing.T) {
	for _, id := range []string{`7`, `"a\"b:c"`, `-1`} {
		r := routedRequest{server: "s.1"}
		var got json.RawMessage
		r.Say = func(e session.Event) { got = e.ID }
		r.prefixServerRequestIDs()
		r.Say(session.Event{ID: json.RawMessage(id)})
		r.Say(session.Event{Method: "notifications/tools/list_changed"})
		r.Say(session.Event{Method: "notifications/resources/updated"})
		if server, own, ok := session.SplitRequestID(got); !ok || server != "s.1" || !reflect.DeepEqual(own, json.RawMessage(id)) {
			t.Errorf("%s becomes %s, then %s %s", id, got, server, own)
		}
	}
	for _, bad := range []string{`7`, `"x"`, `"s:"`, `"s:{}"`, `"s:1 2"`, `null`} {
		if _, _, ok := session.SplitRequestID(json.RawMessage(bad)); ok {
			t.Errorf("%s is accepted as the ID of a server's request", bad)
		}
	}
}

func BenchmarkAll(b *testing.B) {
	var raws []string
	for i := range 10_000 {
		raws = append(raws, fmt.Sprintf(`{"name":"tool_%d","description":"does %d","inputSchema":{"type":"object"}}`, i, i))
	}
	w := newAggregateWorld(b, nil, raws...)
	b.Run("names", func(b *testing.B) {
		for b.Loop() {
			newAggregateToolTable(w.Catalog.Current(), w.all.isInLane)
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if a := w.do(b.Context(), catalogtest.NewRequest("tools/list", "{}")); a.Error != nil {
				b.Fatal(a.Error)
			}
		}
	})
}

// TestAllHasNoToolsForClients checks that the aggregate endpoint omits tools that a server lists only for clients
// with certain capabilities, because the capabilities of its clients are unknown.
func TestAllHasNoToolsForClients(t *testing.T) {
	w := newAggregateWorld(t, nil)
	ours, err := tool.ParseDefinition("s", json.RawMessage(`{"name":"ours"}`))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := tool.ParseDefinition("s", json.RawMessage(`{"name":"theirs"}`))
	if err != nil {
		t.Fatal(err)
	}
	theirs.ForClients = true
	w.Catalog.ToolsListed("s", []*tool.Definition{&ours, &theirs})
	w.Catalog.Publish()
	p, _ := w.page("tools/list", "")
	if got := fmt.Sprintf("%s", p.items); !strings.Contains(got, "s__ours") || strings.Contains(got, "theirs") {
		t.Errorf("listed on /mcp/all: %s", got)
	}
}
