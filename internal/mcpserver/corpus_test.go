package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

type malformed struct {
	ID, Label string
	B64       []byte
}

func malformedFiles(t testing.TB) []malformed {
	var all []malformed
	lines := bufio.NewScanner(bytes.NewReader(shared(t, "security-corpora/malformed-json/corpus.jsonl")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m malformed
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if len(all) != 318 {
		t.Fatalf("%d files", len(all))
	}
	return all
}

// Every file of the corpus as a body, as arguments and as args: invalid ones are refused, valid ones pass as their bytes.
func TestMalformedJSON(t *testing.T) {
	h := newHarness(t)
	session, batches := h.open(mcp.Legacy), h.open(mcp.BatchVersion)
	refused, accepted := 0, 0
	for _, f := range malformedFiles(t) {
		body := string(f.B64)
		for _, header := range []map[string]string{
			{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "tools/list"}, {mcp.HeaderSession: session}, {mcp.HeaderSession: batches}, {},
		} {
			// The files are not messages, so none may get a result.
			a := h.post(header, body)
			if a.status != 200 && a.status != 400 || a.status == 200 && bytes.Contains(a.body, []byte(`"result"`)) {
				t.Errorf("%s as a body: %d %s", f.ID, a.status, a.body)
			}
		}
		before := h.gw.count()
		a := h.post(map[string]string{mcp.HeaderSession: session},
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","args":`+body+`}}}`)
		came := h.gw.count() > before
		switch {
		case a.status != 200 && a.status != 400 || (a.status == 200) != came:
			t.Errorf("%s as args: %d %s", f.ID, a.status, a.body)
		case f.Label == "must-reject" && came:
			t.Errorf("%s came through", f.ID)
		case f.Label == "must-reject":
			refused++
			a.fails(wirejson.CodeParse)
		case came:
			// Leading and trailing space is not part of the value; null is no value.
			if got, want := string(h.gw.lastCall(t).Args), strings.Trim(body, " \t\r\n"); got != want && want != "null" {
				t.Errorf("%s: %q became %q", f.ID, want, got)
			}
			accepted++
		case f.Label == "must-accept":
			// Only what other parsers disagree about may be refused beyond the grammar.
			if m := a.fails(wirejson.CodeParse); !strings.Contains(m.Error.Message, "duplicate member") && !strings.Contains(m.Error.Message, "NUL") {
				t.Errorf("%s is refused: %s", f.ID, m.Error.Message)
			}
		}
	}
	t.Logf("%d refused, %d came through", refused, accepted)
	if refused != 188 {
		t.Errorf("%d must-reject files refused, want 188", refused)
	}
}

// Text that two parsers could read differently is refused.
func TestParserDifferences(t *testing.T) {
	h := newHarness(t)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"METHOD":"tools/list","method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"Method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"method\u0000":"x","method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","Name":"call_tool_destructive"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","n\u0061me":"call_tool_destructive"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","NAME":"c:d"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"args":{"x":1,"x":2}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"args":{"x":{"ſ":1,"s":2}}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"args":{"x":"\ud800"}}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"call_tool_read\",\"arguments\":{\"args\":{\"x\":\"\xff\"}}}}",
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read"}}{}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"args":` + strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64) + `}}}`,
		`{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"id":7,"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"call_tool_read"}}`,
		`{"jsonrpc":"2.0","id":7,"method":5}`, ``, ` `, `null`, `5`, `"x"`,
	} {
		session := h.open(mcp.Legacy)
		a := h.post(map[string]string{mcp.HeaderSession: session}, body)
		if a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
			continue
		}
		if m := a.rpc(); m.Error == nil || m.Error.Code != wirejson.CodeParse && m.Error.Code != wirejson.CodeInvalidRequest {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	if h.gw.count() != 0 {
		t.Error("a call came through")
	}
	// The id is echoed where it can be read, and left out where not.
	a := h.post(nil, `{"jsonrpc":"2.0","id":7,"method":5}`)
	if string(a.rpc().ID) != "7" {
		t.Errorf("%s", a.body)
	}
	if a := h.post(nil, `{`); bytes.Contains(a.body, []byte(`"id"`)) {
		t.Errorf("%s", a.body)
	}
}

// Two thousand damaged messages: none crashes the handler, and an accepted message means the same to another parser.
func TestMutatedMessages(t *testing.T) {
	gw := &fakeGateway{}
	s := plainServer(gw)
	session := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
	whole := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","args":{"x":[1,"\u00e9",{"y":null}]},` +
		`"intent":{"operation_type":"read","reason":"why"},"intent_data_sensitivity":"public"},"_meta":{"progressToken":1}}}`
	bits := []string{`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, "\x00", "\xff", `"name":"c:d",`, `"Name":"c:d",`, `null`, `1e999`, `\u0000`, `\ud800`, `-`, ` `}
	through := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		body := whole
		for range 1 + r.IntN(3) {
			at, cut := r.IntN(len(body)), r.IntN(4)
			put := ""
			if r.IntN(3) > 0 {
				put = bits[r.IntN(len(bits))]
			}
			body = body[:at] + put + body[min(len(body), at+cut):]
		}
		before := gw.count()
		w := direct(s, map[string]string{mcp.HeaderSession: session}, body)
		if w.Code != 200 && w.Code != 202 && w.Code != 400 {
			t.Fatalf("seed %d: %d %s for %q", seed, w.Code, w.Body, body)
		}
		if gw.count() == before {
			continue
		}
		through++
		var other struct {
			Params struct {
				Name      string
				Arguments struct {
					Name *any
					Args json.RawMessage
				}
			}
		}
		got := gw.lastCall(t)
		if err := json.Unmarshal([]byte(body), &other); err != nil {
			t.Fatalf("seed %d: another parser refuses %q: %v", seed, body, err)
		}
		if name, ok := (*orNil(other.Params.Arguments.Name)).(string); other.Params.Name != got.CallTool.String() || ok && name != got.Name ||
			string(other.Params.Arguments.Args) != string(got.Args) && string(other.Params.Arguments.Args) != "null" {
			t.Fatalf("seed %d: another parser reads %q differently", seed, body)
		}
	}
	t.Logf("%d of 2000 came through", through)
}

func orNil(v *any) *any {
	if v == nil {
		return new(any)
	}
	return v
}

// FuzzPost: every request gets a JSON-RPC response or none, and only JSON with the sender's bytes reaches the gateway.
func FuzzPost(f *testing.F) {
	f.Add([]byte(initializeBody), "", "", "", false)
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","args":{}},`+modernMeta+`}}`), mcp.Modern, "tools/call", "call_tool_read", false)
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"intent":{"operation_type":"read"},"args_json":"{}"}}}`), "", "", "", true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"retrieve_tools","arguments":{"query":"a","limit":5}}}`), "", "", "", true)
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), "", "", "", true)
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), "2025-03-26", "", "=?base64?eA==?=", true)
	for _, m := range malformedFiles(f)[:40] {
		f.Add(m.B64, "", "", "", true)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel() // so that no stream stays open
	var called []byte
	gw := &fakeGateway{call: func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		called = r.Args
		return gate.CallResult{Result: json.RawMessage(`{"content":[]}`)}, nil
	}}
	s := plainServer(gw)
	session := direct(s, nil, strings.Replace(initializeBody, mcp.Legacy, mcp.BatchVersion, 1)).Header().Get(mcp.HeaderSession)
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string, inSession bool) {
		called = nil
		gw.calls, gw.found, gw.reads = nil, nil, nil
		r := httptest.NewRequestWithContext(gone, "POST", "http://localhost/mcp", bytes.NewReader(body))
		r.Header = http.Header{"Content-Type": typeJSON}
		for k, v := range map[string]string{mcp.HeaderVersion: version, mcp.HeaderMethod: method, mcp.HeaderName: name} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		if inSession {
			r.Header.Set(mcp.HeaderSession, session)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		got, _ := io.ReadAll(w.Body)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("a panic: %s", got)
		}
		if w.Code == http.StatusAccepted && len(got) == 0 {
			return
		}
		if bytes.HasPrefix(got, []byte("data: {")) {
			return // a subscription
		}
		if !json.Valid(got) || !bytes.Contains(got, []byte(`"jsonrpc":"2.0"`)) {
			t.Fatalf("%d %q", w.Code, got)
		}
		if called != nil && (!json.Valid(called) || !bytes.Contains(body, called)) {
			t.Fatalf("%q from %q", called, body)
		}
	})
}

// FuzzDecodeHeader checks that an encoded value decodes, and that only ASCII passes unencoded.
func FuzzDecodeHeader(f *testing.F) {
	f.Add("call_tool_read")
	f.Add("=?base64?eA==?=")
	f.Add("é")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := mcp.DecodeHeaderValue("=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="); !ok || got != s {
			t.Fatalf("%q became %q", s, got)
		}
		if got, ok := mcp.DecodeHeaderValue(s); ok && got != s && !strings.HasPrefix(s, "=?base64?") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
