package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

const (
	listTool  = `{"name":"list","annotations":{"readOnlyHint":true}}`
	writeTool = `{"name":"write","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"list":{"type":"array"},"any":{}}},"annotations":{"readOnlyHint":false,"destructiveHint":false}}`
	structure = `{"content":[{"type":"text","text":"{\"items\":[{\"id\":1},{\"id\":2}]}"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"items":[{"id":9007199254740993,"name":"a","more":"x"},{"id":2,"name":"b"}]},"_meta":{"k":1}}`
	textual   = `{"content":[{"type":"text","text":"{\"items\": [{\"id\": 1, \"body\": \"line\\nline\"}]}"}]}`
	failure   = `{"content":[{"type":"text","text":"{\"items\":[]}"}],"isError":true}`
	prose     = `{"content":[{"type":"text","text":"It is done."}]}`
)

// answering makes servers return the result.
func (w *world) answering(result string) {
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(result)}, nil
	}
}

func (w *world) ask(r LaneCall) (CallResult, *problem.Problem) {
	r.Caller.Actor.Kind = max(r.Caller.Actor.Kind, auth.Agent)
	res, err := w.gate.Call(context.Background(), r)
	if err != nil {
		return res, problem.From(err)
	}
	return res, nil
}

func rawOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// textsOf returns the texts of the blocks of a result.
func textsOf(t *testing.T, raw json.RawMessage) (texts []string) {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, b := range r.Content {
		texts = append(texts, b.Text)
	}
	return texts
}

// TestSelect checks that a reply contains only the part of a result that the caller, or else the configuration,
// selects. The whole result is stored under its handle.
func TestSelect(t *testing.T) {
	w := newWorld(t, func(c *config.Config) {
		for _, s := range [][2]string{{"*", ".never"}, {"li*", "[.items[].id]"}} {
			one, err := config.NewResultSelection(s[0], s[1])
			if err != nil {
				t.Fatal(err)
			}
			c.Servers[0].Selections = append(c.Servers[0].Selections, one)
		}
	}, listTool)
	for _, tt := range []struct {
		result, given, want string // want: the first text; "" means the unchanged result
		warns               string
	}{
		{structure, `"[.items[] | {id, name}]"`, `[{"id":9007199254740993,"name":"a"},{"id":2,"name":"b"}]`, ""},
		{structure, `".items[].name"`, "\"a\"\n\"b\"", ""},
		{structure, ``, `[9007199254740993,2]`, ""}, {structure, `null`, `[9007199254740993,2]`, ""}, {structure, `""`, `[9007199254740993,2]`, ""},
		{structure, `"."`, "", ""},
		{textual, `".items[0].body"`, `"line\nline"`, ""},
		{failure, `".items"`, "", ""},
		{prose, `".items"`, "", "the result holds no JSON"},
		{structure, `".items.name"`, "", "array has nothing at a string"},
		{structure, `"[.items[] | .id | . as $x | [$x, $x, $x]] | map(.[] | tostring * 3)"`, "", "string and number have no *"},
	} {
		w.answering(tt.result)
		r, p := w.ask(LaneCall{CallTool: policy.CallToolRead, Name: "s:list", Select: rawOrNil(tt.given)})
		if p != nil {
			t.Errorf("%s: %v", tt.given, p)
			continue
		}
		warned := strings.Join(r.Warnings, " ")
		if (warned != "") != (tt.warns != "") || !strings.Contains(warned, tt.warns) || strings.Contains(warned, "9007") {
			t.Errorf("%s: warnings %q", tt.given, warned)
		}
		if tt.want == "" {
			if tt.warns == "" && string(r.Result) != tt.result || r.Handle != "" || !strings.Contains(string(r.Result), tt.result[:40]) {
				t.Errorf("%s: %s, want the whole result", tt.given, r.Result)
			}
			continue
		}
		texts := textsOf(t, r.Result)
		if texts[0] != tt.want || len(texts) != 2 || !strings.Contains(texts[1], w.named(texts[1])) {
			t.Errorf("%s: %q, want %q", tt.given, texts, tt.want)
		}
		if string(w.Results[w.named(texts[1])].Body) != tt.result || strings.Contains(string(r.Result), "structuredContent") || tt.result == structure && string(wirejson.Find(r.Result, "_meta")) != `{"k":1}` {
			t.Errorf("%s: %s; stored: %s", tt.given, r.Result, w.Results[w.named(texts[1])].Body)
		}
		if o := w.Ended[len(w.Ended)-1]; string(o.Response) != tt.result {
			t.Errorf("%s: recorded: %s", tt.given, o.Response)
		}
	}
}

// TestSelectIsCut checks that a result is cut after the selection.
func TestSelectIsCut(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.ResultLimit = 2000 }, listTool)
	w.answering(`{"content":[],"structuredContent":{"items":[` + strings.Repeat(`{"id":1,"name":"aaaaaaaaaaaaaaaa","more":"x"},`, 500) + `{}]}}`)
	r, p := w.ask(LaneCall{CallTool: policy.CallToolRead, Name: "s:list", Select: json.RawMessage(`"[.items[] | {name}]"`)})
	if p != nil || len(r.Result) > 2000 || !strings.HasPrefix(textsOf(t, r.Result)[0], `[{"name":`) || len(w.Results) != 2 {
		t.Fatalf("%v: %s", p, r.Result)
	}
}

// TestNoSelect checks that an invalid selection is refused before the server is called.
func TestNoSelect(t *testing.T) {
	w := newWorld(t, nil, listTool)
	for _, given := range []string{`".."`, `"range(9)"`, `"def f: .; f"`, `"foo("`, `7`, `[".a"]`, `{"a":1}`, `"` + strings.Repeat("(", 200) + `"`} {
		_, p := w.ask(LaneCall{CallTool: policy.CallToolRead, Name: "s:list", Select: json.RawMessage(given)})
		if p == nil || p.Code != problem.SelectInvalid || w.Appended[len(w.Appended)-1].Metadata.Decision.Check != "select" {
			t.Errorf("%s: %v", given, p)
		}
	}
	if len(w.Begun) > 0 {
		t.Error("the server was called")
	}
}

// named returns the handle in a text.
func (w *world) named(text string) string {
	for handle := range w.Results {
		if strings.Contains(text, handle) {
			return handle
		}
	}
	return "none"
}

// hand returns a world in which an agent has the handle of a result of s:list.
func hand(t *testing.T, result string) (w *world, handle string) {
	t.Helper()
	w = newWorld(t, func(c *config.Config) {
		c.Servers = append(c.Servers, config.Server{Name: "other", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto})
	}, listTool, writeTool)
	w.SetToolsOn("other", writeTool, `{"name":"look","inputSchema":{"type":"object","properties":{"any":{}}},"annotations":{"readOnlyHint":true}}`)
	w.answering(result)
	r, p := w.ask(LaneCall{CallTool: policy.CallToolRead, Name: "s:list", Select: json.RawMessage(`"1"`),
		Declared: sensitive("private")})
	if p != nil {
		t.Fatal(p)
	}
	return w, w.named(textsOf(t, r.Result)[1])
}

func sensitive(sensitivity string) (d policy.DeclaredIntent) {
	d.AddParameter("intent_data_sensitivity", json.RawMessage(`"`+sensitivity+`"`))
	return d
}

// TestResultAsArgument checks that a stored result reaches the server byte for byte, and that the record contains its
// origin and no handle.
func TestResultAsArgument(t *testing.T) {
	volume.SkipUnderRace(t)
	big := string(wirejson.AppendString(nil, strings.Repeat("x\ny\"é", 1<<20)))
	w, handle := hand(t, `{"content":[],"structuredContent":{"items":[{"body":`+big+`,"n": 9007199254740993, "list":[1, 2]}]}}`)
	for path, want := range map[string]string{"items[0].body": big, "structuredContent.items[0].body": big} {
		var got json.RawMessage
		w.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
			got = r.Call.Arguments
			return session.Reply{Result: json.RawMessage(prose)}, nil
		}
		args := fmt.Sprintf(`{"text": {"$result": %q, "path": %q}, "any": [{"$result":%q,"path":"items[0].n"}, 1]}`, handle, path, handle)
		if _, p := w.ask(LaneCall{ResultRefs: true, CallTool: policy.CallToolWrite, Name: "other:write", Args: json.RawMessage(args), Declared: sensitive("public")}); p != nil {
			t.Fatalf("%s: %v", path, p)
		}
		if want = fmt.Sprintf(`{"text": %s, "any": [9007199254740993, 1]}`, want); string(got) != want {
			t.Errorf("%s: %.200s… of %d bytes, want %d", path, got, len(got), len(want))
		}
		r := w.Begun[len(w.Begun)-1]
		if on := string(r.Arguments); strings.Contains(on, handle) || !strings.Contains(on, `"from":"s:list"`) || !strings.Contains(on, `"sha256":"`) || len(on) > 1000 || r.Metadata.Intent.DataSensitivity != "private" {
			t.Errorf("record: %.1000s, %+v", on, r.Metadata.Intent)
		}
	}
}

// TestResultAsArgumentIsLimited checks that a value does not reach another actor, does not leave its server in a
// read, is not expanded again, and must match the schema.
func TestResultAsArgumentIsLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		tool, args string // %s is the handle
		variant    policy.CallToolVariant
		caller     auth.Caller
		without    bool // the caller does not support result references
		code       problem.Code
		sent       string
	}{
		"another server in the read lane": {"other:look", `{"any":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolRead, auth.Caller{}, false, problem.ArgumentMismatch, ""},
		"the same server":                 {"s:write", `{"any":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"any":7}`},
		"another actor":                   {"other:write", `{"any":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{Actor: auth.Actor{Kind: auth.Admin}}, false, problem.ResultGone, ""},
		"a handle that is none":           {"other:write", `{"any":{"$result":"x%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ResultGone, ""},
		"an empty handle":                 {"other:write", `{"any":{"$result":"","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ResultGone, ""},
		"a path to nothing":               {"other:write", `{"any":{"$result":"%s","path":"items[7]"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ResultGone, ""},
		"a path to several":               {"other:write", `{"any":{"$result":"%s","path":"items[*].n"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ResultGone, ""},
		"past the schema":                 {"other:write", `{"text":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ArgsMismatch, ""},
		"inside a value that was put in":  {"other:write", `{"any":{"$result":"%s","path":"items[0].inner"}}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"any":{"$result":"HANDLE","path":"items[0].n"}}`},
		"with a further member":           {"other:write", `{"any":{"$result":"%s","path":"items[0].n","x":1}}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"any":{"$result":"HANDLE","path":"items[0].n","x":1}}`},
		"without a path":                  {"other:write", `{"any":{"$result":"%s"}}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"any":{"$result":"HANDLE"}}`},
		"written with escapes":            {"other:write", `{"any":{"\u0024result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"any":7}`},
		"another surface":                 {"other:write", `{"any":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, true, "", `{"any":{"$result":"HANDLE","path":"items[0].n"}}`},
		"in the place of all arguments":   {"other:write", `{"$result":"%s","path":"items[0]"}`, policy.CallToolWrite, auth.Caller{}, false, "", `{"n":7,"inner":{"$result":"HANDLE","path":"items[0].n"}}`},
		"a tool that is locked":           {"other:gone", `{"any":{"$result":"%s","path":"items[0].n"}}`, policy.CallToolWrite, auth.Caller{}, false, problem.ToolNotFound, ""},
	} {
		w, handle := hand(t, `{"content":[],"structuredContent":{"items":[{"n":7,"inner":{"$result":"HANDLE","path":"items[0].n"}}]}}`)
		sent := ""
		w.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
			sent = strings.ReplaceAll(string(r.Call.Arguments), handle, "HANDLE")
			return session.Reply{Result: json.RawMessage(prose)}, nil
		}
		begun := len(w.Begun)
		args := strings.ReplaceAll(tt.args, "%s", handle)
		_, p := w.ask(LaneCall{ResultRefs: !tt.without, CallTool: tt.variant, Name: tt.tool, Args: json.RawMessage(args), Caller: tt.caller})
		code := problem.Code("")
		if p != nil {
			code = p.Code
		}
		if code != tt.code || sent != tt.sent {
			t.Errorf("%s: %v, sent %s", name, p, sent)
		}
		var r activity.Record
		if len(w.Begun) > begun {
			r = w.Begun[begun]
		} else {
			r = w.Appended[len(w.Appended)-1]
		}
		if !tt.without && strings.Contains(string(r.Arguments), handle) && len(findResultRefs(json.RawMessage(args))) > 0 {
			t.Errorf("%s: the record contains the handle: %s", name, r.Arguments)
		}
		if p != nil && strings.Contains(p.Message+p.Hint, handle) {
			t.Errorf("%s: the error contains the handle: %v", name, p)
		}
	}
}

// TestWhereResultsMayGo checks, for every combination of caller, server, lane and form, that a value reaches a server
// only where that is allowed.
func TestWhereResultsMayGo(t *testing.T) {
	token := auth.Caller{Actor: auth.Actor{Kind: auth.Agent, Name: "ci", ID: "1"}, Bounds: bounded(policy.Scope{})}
	forms := map[string]bool{ // whether the form refers to a result
		`{"any":{"$result":"%s","path":"items[0].n"}}`: true, `{"any":{"a":[1,{"b":{"path":"items[0].n","$result":"%s"}}]}}`: true, `{"any":[{"\u0024result":"%s","path":"items[0].n"}]}`: true,
		`{"any":{"$result":"%s","path":"items[0].n","x":1}}`: false, `{"any":{"$result":"%s"}}`: false, `{"any":{"$result":["%s"],"path":"items[0].n"}}`: false,
		`{"any":"{\"$result\":\"%s\",\"path\":\"items[0].n\"}"}`: false, `{"any":{"$Result":"%s","path":"items[0].n"}}`: false,
	}
	tries, went := 0, 0
	for caller, who := range map[string]auth.Caller{"the same": {}, "a person": {Actor: auth.Actor{Kind: auth.Admin}}, "a token": token} {
		for _, server := range []string{"s", "other"} {
			for _, variant := range []policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive} {
				for form, names := range forms {
					w, handle := hand(t, `{"content":[],"structuredContent":{"items":[{"n":424242}]}}`)
					w.SetTools(listTool, writeTool, `{"name":"look","annotations":{"readOnlyHint":true}}`)
					sent := ""
					w.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
						sent = string(r.Call.Arguments)
						return session.Reply{Result: json.RawMessage(prose)}, nil
					}
					_, p := w.ask(LaneCall{ResultRefs: true, CallTool: variant, Name: server + ":look", Args: json.RawMessage(strings.ReplaceAll(form, "%s", handle)), Caller: who})
					tries++
					may := names && caller == "the same" && (server == "s" || variant != policy.CallToolRead)
					if strings.Contains(sent, "424242") {
						went++
					}
					if strings.Contains(sent, "424242") != may || names && !may && sent != "" {
						t.Errorf("%s, %s, %s, %s: %v, sent %s", caller, server, variant, form, p, sent)
					}
				}
			}
		}
	}
	t.Logf("%d combinations, %d of them allowed", tries, went)
}
