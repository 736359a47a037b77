package gateway

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

	"mcpproxy/internal/activity"
	"mcpproxy/internal/alias"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// allWorld has the servers s and t, with what they offer.
func allWorld(t *testing.T, change func(*config.Config), definitions ...string) (*world, *relays) {
	w := newWorld(t, func(c *config.Config) {
		c.Servers = append(c.Servers, config.Server{Name: "t", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto})
		if change != nil {
			change(c)
		}
	}, definitions...)
	r := &relays{w: w, offered: map[string][]json.RawMessage{}}
	w.relays = r
	for i, name := range []string{"s", "t"} {
		w.catalog.StateChanged(upstream.State{Name: name, Phase: upstream.Ready, Offers: uint64(i + 1),
			Capabilities: json.RawMessage(`{"tools":{},"prompts":{"listChanged":true},"resources":{}}`)})
	}
	w.catalog.Refresh()
	return w, r
}

func keysOf(t *testing.T, p Page, key string) []string {
	t.Helper()
	var all []string
	for _, raw := range p.Items {
		name, ok := rawjson.String(rawjson.Find(raw, key))
		if !ok {
			t.Errorf("no %s in %s", key, raw)
		}
		all = append(all, name)
	}
	return all
}

// listAll gives the elements of all pages.
func listAll(t *testing.T, w *world, o Offer) (all []json.RawMessage, pages int) {
	t.Helper()
	for cursor := ""; ; {
		p, err := w.gateway.ListAll(t.Context(), o, cursor, anAgent)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Items...)
		pages++
		if cursor = p.Next; cursor == "" {
			return all, pages
		}
	}
}

func allCall(method, params string) AllRequest {
	r := passed(method, params)
	r.Server = ""
	return AllRequest{RelayRequest: r}
}

// A list has what can be called, under its name among all; everything else of
// a definition is the server's bytes, but for hints that are other ones.
func TestAllTools(t *testing.T) {
	const odd = `{"vendor":{"n":9007199254740993},  "\u006eame":"a__b","annotations":{"title":"x", "readOnlyHint":true,"v":1}}`
	w, _ := allWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		c.Servers[0].HintOverrides = []config.HintOverride{
			{Pattern: "deletes", Hints: tool.Hints{Destructive: tool.False, OpenWorld: tool.True}},
			{Pattern: "bare", Hints: tool.Hints{ReadOnly: tool.True}},
		}
	}, reads, deletes, denied, odd, `{"name":"bare"}`, `{"name":"x/y"}`)
	p, err := w.gateway.ListAll(t.Context(), Tools, "", anAgent)
	want := []string{
		strings.Replace(odd, `"a__b"`, `"s__a__b"`, 1),
		`{"name":"s__bare","annotations":{"readOnlyHint":true}}`,
		`{"name":"s__deletes","annotations":{"destructiveHint":false,"openWorldHint":true}}`,
		strings.Replace(reads, `"reads"`, `"s__reads"`, 1),
		`{"name":"` + alias.Name("s", "x/y") + `"}`,
	}
	if err != nil || p.Next != "" || len(p.Items) != len(want) {
		t.Fatalf("%s %v", p.Items, err)
	}
	for i := range want {
		if string(p.Items[i]) != want[i] {
			t.Errorf("got  %s\nwant %s", p.Items[i], want[i])
		}
	}
	if p, _ := w.gateway.ListAll(t.Context(), Tools, "", Caller{}); len(p.Items) != 0 {
		t.Errorf("nobody sees %s", p.Items)
	}
}

// Under enforce the hints that are inferred are shown as they count.
func TestAllToolsInferred(t *testing.T) {
	w, _ := allWorld(t, func(c *config.Config) { c.Intent.InferHints = policy.InferEnforce },
		`{"name":"delete_user","description":"Deletes a user for good."}`, `{"name":"list_users","description":"Lists the users."}`)
	all, _ := listAll(t, w, Tools)
	if len(all) != 2 || string(rawjson.Find(all[0], "annotations")) != `{"readOnlyHint":false,"destructiveHint":true}` ||
		!strings.Contains(string(rawjson.Find(all[1], "annotations")), `"readOnlyHint":true`) {
		t.Errorf("%s", all)
	}
}

// The tools of real servers come out unchanged apart from their names.
func TestAllRealTools(t *testing.T) {
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
			name, _ := rawjson.String(rawjson.Find(raw, "name"))
			sent["s__"+name] = raw
		}
		w, _ := allWorld(t, nil, raws...)
		all, _ := listAll(t, w, Tools)
		for _, raw := range all {
			name, _ := rawjson.String(rawjson.Find(raw, "name"))
			if back := bytes.Replace(raw, []byte(`"s__`), []byte(`"`), 1); sent[name] == nil || !bytes.Equal(back, sent[name]) {
				t.Errorf("%s has changed: %.300s", name, raw)
			}
		}
		total += len(all)
		if len(all) != len(list.Tools) {
			t.Errorf("%s: %d of %d tools", file, len(all), len(list.Tools))
		}
	}
	if total < 700 {
		t.Errorf("%d tools are too few", total)
	}
	t.Logf("%d tools of %d servers", total, len(files))
}

// Ten thousand tools come in pages, each one once and in order, also when the
// tools change between two pages.
func TestAllPages(t *testing.T) {
	var raws []string
	for i := range 10_000 {
		raws = append(raws, fmt.Sprintf(`{"name":"tool_%d","description":"does %d"}`, i*7919%10_000, i))
	}
	w, _ := allWorld(t, nil, raws...)
	all, pages := listAll(t, w, Tools)
	got := keysOf(t, Page{Items: all}, "name")
	if len(got) != 10_000 || pages != 10 || !slices.IsSorted(got) || len(slices.Compact(got)) != 10_000 {
		t.Errorf("%d tools on %d pages", len(got), pages)
	}
	first, _ := w.gateway.ListAll(t.Context(), Tools, "", anAgent)
	last := keysOf(t, first, "name")[len(first.Items)-1]
	var fewer []string
	for _, raw := range raws {
		if !strings.Contains(raw, `"`+strings.TrimPrefix(last, "s__")+`"`) {
			fewer = append(fewer, raw)
		}
	}
	w.list(fewer...)
	next, err := w.gateway.ListAll(t.Context(), Tools, first.Next, anAgent)
	if err != nil || keysOf(t, next, "name")[0] != got[1000] {
		t.Errorf("after a change the next page begins with %s, not %s (%v)", keysOf(t, next, "name")[0], got[1000], err)
	}
	for _, bad := range []string{"x", "%", "MTA", makeCursor(Prompts, "a")} {
		if _, err := w.gateway.ListAll(t.Context(), Tools, bad, anAgent); problem.From(err) == nil || problem.From(err).Code != problem.InvalidParameter {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	big := make([]string, 30)
	for i := range big {
		big[i] = fmt.Sprintf(`{"name":"big%d","description":%q}`, i, strings.Repeat("x", 250_000))
	}
	w.list(big...)
	if all, pages := listAll(t, w, Tools); len(all) != 30 || pages != 2 {
		t.Errorf("%d big tools on %d pages", len(all), pages)
	}
}

// A call goes through the door under the tool's own name, and is refused as
// elsewhere.
func TestAllCall(t *testing.T) {
	w, r := allWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		c.Intent.RequireIntent = true
	}, reads, deletes, denied, `{"name":"a__b"}`, `{"name":"x/y"}`)
	var sent []session.Request
	w.answer = func(_ context.Context, r *session.Request) (session.Reply, error) {
		sent = append(sent, *r)
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	for name, own := range map[string]string{"s__reads": "reads", "s__deletes": "deletes", "s__a__b": "a__b", alias.Name("s", "x/y"): "x/y"} {
		w.begun, sent = nil, nil
		q := allCall("tools/call", `{"_meta":{"progressToken":1}, "name":"`+name+`","arguments":{"n":9007199254740993}}`)
		q.Request.Fields = []mcp.Field{{Name: "Mcp-Method", Value: "tools/call"}, {Name: "Mcp-Name", Value: name}}
		a, err := w.gateway.RelayAll(t.Context(), q)
		if err != nil || string(a.Result) != `{"content":[]}` || len(sent) != 1 {
			t.Fatalf("%s: %s %v", name, a.Result, err)
		}
		if got := string(sent[0].Params); got != `{"_meta":{"progressToken":1}, "name":"`+own+`","arguments":{"n":9007199254740993}}` {
			t.Errorf("%s: sent %s", name, got)
		}
		if want := []mcp.Field{{Name: "Mcp-Method", Value: "tools/call"}, {Name: "Mcp-Name", Value: own}}; !slices.Equal(sent[0].Fields, want) {
			t.Errorf("%s: sent with %v", name, sent[0].Fields)
		}
		if b := w.begun[0]; b.ServerName != "s" || b.ToolName != own || b.Metadata.ToolVariant == "" ||
			name == "s__reads" && b.Metadata.ToolVariant != "call_tool_read" {
			t.Errorf("%s: on record %+v", name, b)
		}
	}
	w.appended, w.begun = nil, nil
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
		if _, err := w.gateway.RelayAll(t.Context(), allCall("tools/call", params)); problem.From(err) == nil || problem.From(err).Code != want {
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
	if len(w.begun) != 0 || len(w.appended) != 8 || w.appended[0].Type != activity.PolicyDecision || len(r.asked) != 0 {
		t.Errorf("on record: %d begun, %d refused; passed on: %q", len(w.begun), len(w.appended), r.asked)
	}
	if _, err := w.gateway.RelayAll(t.Context(), allCall("tools/call", `{"name":7}`)); problem.From(err).Code != problem.InvalidName {
		t.Error(err)
	}
}

// Prompts and resources find their servers; an address that two servers have
// names its server.
func TestAllOffers(t *testing.T) {
	w, r := allWorld(t, nil)
	raw := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	r.offered["s prompts/list"] = raw(`{"name":"greet","x":1e400}`, `{"name":"odd one"}`, `{"noname":1}`, `{"name":"greet"}`)
	r.offered["t prompts/list"] = raw(`{"name":"greet"}`)
	r.offered["s resources/list"] = raw(`{"uri":"demo://1"}`, `{"uri":"both://x","name":"X"}`, `{"uri":"mcpproxy://t/demo://2"}`)
	r.offered["t resources/list"] = raw(`{"uri":"demo://2"}`, `{"uri":"both://x"}`)
	r.offered["t resources/templates/list"] = raw(`{"uriTemplate":"t://{id}"}`)
	for _, c := range []struct {
		o    Offer
		key  string
		want []string
	}{
		{Prompts, "name", []string{"s__greet", alias.Name("s", "odd one"), "t__greet"}},
		{Resources, "uri", []string{"demo://1", "demo://2", "mcpproxy://s/both://x", "mcpproxy://s/mcpproxy://t/demo://2", "mcpproxy://t/both://x"}},
		{Templates, "uriTemplate", []string{"t://{id}"}},
	} {
		p, err := w.gateway.ListAll(t.Context(), c.o, "", anAgent)
		if err != nil || !slices.Equal(keysOf(t, p, c.key), c.want) {
			t.Errorf("%s %v", p.Items, err)
		}
	}
	for _, c := range []struct{ method, params, want, server string }{
		{"prompts/get", `{"name":"t__greet"}`, `{"name":"greet"}`, "t"},
		{"prompts/get", `{"name":"` + alias.Name("s", "odd one") + `"}`, `{"name":"odd one"}`, "s"},
		{"resources/read", `{"uri":"demo://2"}`, `{"uri":"demo://2"}`, "t"},
		{"resources/read", `{"uri":"mcpproxy://s/both://x"}`, `{"uri":"both://x"}`, "s"},
		{"resources/read", `{"uri":"mcpproxy://t/anything"}`, `{"uri":"anything"}`, "t"},
		{"resources/read", `{"uri":"mcpproxy://s/mcpproxy://t/demo://2"}`, `{"uri":"mcpproxy://t/demo://2"}`, "s"},
		{"resources/read", `{"uri":"t://7"}`, `{"uri":"t://7"}`, "t"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"s__greet"},"argument":{}}`, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{}}`, "s"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"t://{id}"}}`, `{"ref":{"type":"ref/resource","uri":"t://{id}"}}`, "t"},
	} {
		r.sent = nil
		if _, err := w.gateway.RelayAll(t.Context(), allCall(c.method, c.params)); err != nil || len(r.sent) != 1 ||
			r.sent[0] != c.server+" "+c.want {
			t.Errorf("%s %s: %v, sent %q", c.method, c.params, err, r.sent)
		}
	}
	for _, c := range []struct{ method, params, want string }{
		{"resources/read", `{"uri":"both://x"}`, "Several servers have a resource 'both://x'."},
		{"resources/read", `{"uri":"none://x"}`, "There is no resource 'none://x'."},
		{"resources/read", `{"uri":"mcpproxy://u/x"}`, "Server 'u' not found"},
		{"resources/read", `{}`, "the uri must be a string"},
		{"prompts/get", `{"name":"greet"}`, "There is no prompt 'greet'."},
		{"prompts/get", `{"name":"u__greet"}`, "There is no prompt 'u__greet'."},
		{"completion/complete", `{"ref":{"type":"x"}}`, "params.ref must be"},
	} {
		_, err := w.gateway.RelayAll(t.Context(), allCall(c.method, c.params))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.method, c.params, err)
		}
	}
	if a, err := w.gateway.RelayAll(t.Context(), allCall("x/y", `{}`)); err != nil || a.Error == nil || a.Error.Code != -32601 {
		t.Errorf("%+v %v", a, err)
	}
}

// A server that hangs holds up the others once, and not each time; what it said
// before stays.
func TestAllOffersOfOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := allWorld(t, nil)
		r.offered["s resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"s://1"}`)}
		r.offered["t resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"t://1"}`)}
		for _, c := range []struct {
			after time.Duration
			hangs string
			takes time.Duration
		}{
			{0, "", 0}, {0, "t", 0}, {staleAfter, "t", listTime}, {0, "t", 0}, {lostAfter - time.Second, "t", 0},
			{2 * time.Second, "t", listTime}, {0, "", 0}, {lostAfter + time.Second, "", 0},
		} {
			time.Sleep(c.after)
			r.hangs = c.hangs
			start := time.Now()
			p, err := w.gateway.ListAll(t.Context(), Resources, "", anAgent)
			if got := time.Since(start); err != nil || got != c.takes || !slices.Equal(keysOf(t, p, "uri"), []string{"s://1", "t://1"}) {
				t.Errorf("%+v: %s after %v, %v", c, p.Items, got, err)
			}
		}
	})
}

// What the lists say is told from what they said, and only that.
func TestListedNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := allWorld(t, nil, reads)
		before, again := w.gateway.ListedNow(anAgent)
		w.catalog.StateChanged(upstream.State{Name: "other"})
		w.catalog.Refresh()
		<-again
		same, again := w.gateway.ListedNow(anAgent)
		if same != before {
			t.Error("nothing has changed")
		}
		w.list(reads, deletes)
		<-again
		tools, again := w.gateway.ListedNow(anAgent)
		if tools.Tools == before.Tools || tools.Prompts != before.Prompts || tools.Resources != before.Resources {
			t.Error("the tools have changed, and nothing else")
		}
		w.catalog.StateChanged(upstream.State{Name: "t", Phase: upstream.Ready, Offers: 9, Capabilities: json.RawMessage(`{"prompts":{}}`)})
		w.catalog.Refresh()
		<-again
		if now, _ := w.gateway.ListedNow(anAgent); now.Tools != tools.Tools || now.Prompts == tools.Prompts || now.Resources == tools.Resources {
			t.Error("the prompts and resources have changed, and nothing else")
		}
		if got := w.gateway.OfferingOf(anAgent); got != (Offering{Prompts: true, Resources: true}) {
			t.Errorf("together: %+v", got)
		}
		w.catalog.StateChanged(upstream.State{Name: "t", Phase: upstream.Connecting})
		w.catalog.Refresh()
		if got := w.gateway.OfferingOf(anAgent); got != (Offering{true, true, true, true}) {
			t.Errorf("with one that is not known: %+v", got)
		}
	})
}

func TestAskedBy(t *testing.T) {
	for _, id := range []string{`7`, `"a\"b:c"`, `-1`} {
		r := namedRequest{server: "s.1"}
		var got json.RawMessage
		r.Say = func(e session.Event) { got = e.ID }
		r.nameAsks()
		r.Say(session.Event{ID: json.RawMessage(id)})
		r.Say(session.Event{Method: "notifications/tools/list_changed"})
		r.Say(session.Event{Method: "notifications/resources/updated"})
		if server, own, ok := AskedBy(got); !ok || server != "s.1" || !reflect.DeepEqual(own, json.RawMessage(id)) {
			t.Errorf("%s becomes %s, then %s %s", id, got, server, own)
		}
	}
	for _, bad := range []string{`7`, `"x"`, `"s:"`, `"s:{}"`, `"s:1 2"`, `null`} {
		if _, _, ok := AskedBy(json.RawMessage(bad)); ok {
			t.Errorf("%s was asked by a server", bad)
		}
	}
}

func BenchmarkAll(b *testing.B) {
	var raws []string
	for i := range 10_000 {
		raws = append(raws, fmt.Sprintf(`{"name":"tool_%d","description":"does %d","inputSchema":{"type":"object"}}`, i, i))
	}
	w := newWorld(b, nil, raws...)
	b.Run("names", func(b *testing.B) {
		for b.Loop() {
			nameAll(w.catalog.Current())
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if p, err := w.gateway.ListAll(b.Context(), Tools, "", anAgent); err != nil || len(p.Items) != pageItems {
				b.Fatal(err)
			}
		}
	})
}

// TestAllHasNoToolsForClients: what a server has only for clients that it can
// ask something is not among all, where nobody says who can be asked.
func TestAllHasNoToolsForClients(t *testing.T) {
	w := newWorld(t, nil)
	ours, err := tool.ParseDefinition("s", json.RawMessage(`{"name":"ours"}`))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := tool.ParseDefinition("s", json.RawMessage(`{"name":"theirs"}`))
	if err != nil {
		t.Fatal(err)
	}
	theirs.ForClients = true
	w.catalog.ToolsListed("s", []tool.Definition{ours, theirs})
	w.catalog.Refresh()
	p, err := w.gateway.ListAll(t.Context(), Tools, "", anAgent)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", p.Items); !strings.Contains(got, "s__ours") || strings.Contains(got, "theirs") {
		t.Errorf("among all: %s", got)
	}
}
