package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// badCall is a call that every endpoint must refuse in the same way.
type badCall struct {
	name string
	// arguments is the JSON of the arguments to call_tool_write over MCP.
	arguments string
	// rest is the body of POST /tools/call, or "" if REST cannot express the call.
	rest string
	// cli is the argument list after `call tool-write`, or nil if the CLI cannot express the call.
	cli     []string
	code    string
	message string // "" = any
	exit    int
}

var longReason = strings.Repeat("ä", 1001)

func restCall(name, args, intent string) string {
	return fmt.Sprintf(`{"tool_variant":"call_tool_write","name":%q,"args":%s,"intent":{"operation_type":"write"%s}}`, name, args, intent)
}

var badCalls = []badCall{
	{"name without colon", `{"name":"plain","args":{"n":1}}`, restCall("plain", `{"n":1}`, ""), []string{"plain", "--args", `{"n":1}`}, "INVALID_NAME", "", 2},
	{"unknown server", `{"name":"nope:plain","args":{"n":1}}`, restCall("nope:plain", `{"n":1}`, ""), []string{"nope:plain", "--args", `{"n":1}`}, "SERVER_NOT_FOUND", "", 5},
	{"unknown tool", `{"name":"m:plane","args":{"n":1}}`, restCall("m:plane", `{"n":1}`, ""), []string{"m:plane", "--args", `{"n":1}`}, "TOOL_NOT_FOUND", "", 5},
	{"args not an object", `{"name":"m:plain","args":[1]}`, restCall("m:plain", `[1]`, ""), []string{"m:plain", "--args", `[1]`}, "INVALID_ARGS", "", 2},
	{"args not JSON", `{"name":"m:plain","args_json":"{n:1}"}`, "", []string{"m:plain", "--args", `{n:1}`}, "INVALID_ARGS", "", 2},
	{"args_json not an object", `{"name":"m:plain","args_json":"7"}`, "", []string{"m:plain", "--json_args", "7"}, "INVALID_ARGS", "", 2},
	{"a duplicate key", `{"name":"m:plain","args_json":"{\"n\":1,\"n\":2}"}`, "", []string{"m:plain", "--args", `{"n":1,"n":2}`}, "INVALID_ARGS", "", 2},
	{"both forms", `{"name":"m:plain","args":{"n":1},"args_json":"{\"n\":1}"}`, "", nil, "INVALID_ARGS", "", 2},
	{"against the schema", `{"name":"m:plain","args":{"n":"one"}}`, restCall("m:plain", `{"n":"one"}`, ""), []string{"m:plain", "--args", `{"n":"one"}`}, "ARGS_MISMATCH", "", 2},
	{"undeclared argument", `{"name":"m:plain","args":{"n":1,"x":2}}`, restCall("m:plain", `{"n":1,"x":2}`, ""), []string{"m:plain", "--args", `{"n":1,"x":2}`}, "ARGS_MISMATCH", "", 2},
	{"reason too long", `{"name":"m:plain","args":{"n":1},"intent_reason":"` + longReason + `"}`, restCall("m:plain", `{"n":1}`, `,"reason":"`+longReason+`"`),
		[]string{"m:plain", "--args", `{"n":1}`, "--reason", longReason}, "REASON_TOO_LONG", "intent.reason exceeds maximum length of 1000 characters", 3},
	{"unknown sensitivity", `{"name":"m:plain","args":{"n":1},"intent_data_sensitivity":"secret"}`, restCall("m:plain", `{"n":1}`, `,"data_sensitivity":"secret"`),
		[]string{"m:plain", "--args", `{"n":1}`, "--sensitivity", "secret"}, "INVALID_SENSITIVITY", "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown", 3},
}

const strictTool = `{"name":"plain","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}`

func TestBadCallsAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, strictTool)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:plain")
	agents := map[string]*agent{"legacy": d.legacy(), "modern": d.stateless()}
	for _, c := range badCalls {
		t.Run(c.name, func(t *testing.T) {
			for era, a := range agents {
				result := a.call("call_tool_write", c.arguments)
				if !result.IsError {
					t.Fatalf("%s: the call passed: %+v", era, result)
				}
				c.check(t, era, result.refusal(t))
			}
			if c.rest != "" {
				c.checkREST(t, d)
			}
			if c.cli != nil {
				c.checkCLI(t, d)
			}
		})
	}
	if n := upstream.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
}

func (c badCall) check(t *testing.T, surface string, p refusal) {
	t.Helper()
	if p.Code != c.code || c.message != "" && p.Message != c.message || p.Message == "" {
		t.Errorf("%s: got %s %q, want %s %q", surface, p.Code, p.Message, c.code, c.message)
	}
	if p.Hint == "" {
		t.Errorf("%s: the hint is missing", surface)
	}
	if c.code == "ARGS_MISMATCH" && !strings.Contains(string(p.Details), "inputSchema") {
		t.Errorf("%s: the schema is not in the details: %s", surface, p.Details)
	}
}

func (c badCall) checkREST(t *testing.T, d *daemon) {
	t.Helper()
	status, body := d.rest("POST", "/tools/call", c.rest)
	var p struct {
		Code, Detail, Hint string
		Details            json.RawMessage
	}
	if err := json.Unmarshal(body, &p); err != nil || status < 400 || status >= 500 {
		t.Fatalf("rest: status %d, %s", status, body)
	}
	c.check(t, "rest", refusal{p.Code, p.Detail, p.Hint, p.Details})
}

func (c badCall) checkCLI(t *testing.T, d *daemon) {
	t.Helper()
	exit, stdout, stderr := d.cli(append([]string{"call", "tool-write", "-o", "json"}, c.cli...)...)
	var p struct{ Error refusal }
	if err := json.Unmarshal([]byte(stderr), &p); err != nil {
		t.Fatalf("cli: stderr is no JSON: %s", stderr)
	}
	c.check(t, "cli", p.Error)
	if exit != c.exit || stdout != "" {
		t.Errorf("cli: exit code %d, want %d; stdout %q", exit, c.exit, stdout)
	}
	_, _, stderr = d.cli(append([]string{"call", "tool-write"}, c.cli...)...)
	if !strings.HasPrefix(stderr, "Error: ") || !strings.Contains(stderr, "\nHint: ") {
		t.Errorf("cli: the text output is %q", stderr)
	}
}

func TestOtherBadInput(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, strictTool)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:plain")
	a := d.legacy()
	huge := `{"n":1,"x":"` + strings.Repeat("x", 10<<20) + `"}`

	t.Run("10 MB of arguments", func(t *testing.T) {
		status, answer, _ := a.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_write","arguments":{"name":"m:plain","args":`+huge+`}}}`, nil)
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(string(answer), "4194304") && !strings.Contains(string(answer), "4 MiB") {
			t.Errorf("mcp: status %d, %.300s", status, answer)
		}
		if status, answer := d.rest("POST", "/tools/call", restCall("m:plain", huge, "")); status != http.StatusRequestEntityTooLarge {
			t.Errorf("rest: status %d, %.300s", status, answer)
		}
		file := filepath.Join(t.TempDir(), "args.json")
		if err := os.WriteFile(file, []byte(huge), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := d.cli("call", "tool-write", "m:plain", "--args", "@"+file); code != 2 || !strings.HasPrefix(stderr, "Error: ") {
			t.Errorf("cli: exit code %d, %.300s", code, stderr)
		}
	})
	t.Run("the old call_tool", func(t *testing.T) {
		r := a.call("call_tool", `{"name":"m:plain"}`)
		const want = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and recommendations."
		if r.rpcError == nil || r.rpcError.Code != -32602 || r.rpcError.Message != want {
			t.Errorf("got %+v", r.rpcError)
		}
	})
	t.Run("filter values that do not exist", func(t *testing.T) {
		for _, q := range []string{"type=call", "status=ok", "intent_type=delete", "sensitivity=secret", "limit=0", "limit=1001", "limit=ten", "start_time=yesterday", "cursor=%21", "typ=tool_call"} {
			status, body := d.rest("GET", "/activity?"+q, "")
			name := strings.SplitN(q, "=", 2)[0]
			if status != http.StatusBadRequest || !strings.Contains(string(body), name) {
				t.Errorf("%s: status %d, %s", q, status, body)
			}
		}
		if code, _, stderr := d.cli("activity", "list", "--intent-type", "delete"); code != 2 || !strings.Contains(stderr, "read") {
			t.Errorf("cli: exit code %d, %s", code, stderr)
		}
	})
	t.Run("a configuration with three mistakes", func(t *testing.T) {
		good, err := os.ReadFile(d.configPath())
		if err != nil {
			t.Fatal(err)
		}
		d.writeConfig(`{
			"tools_limitt": 5,
			"call_timeout": "soon",
			"mcpServers": {"m": {"url": "` + upstream.URL + `", "command": "x"}},
		}`)
		code, stdout, stderr := d.cli("config", "validate")
		printed := stdout + stderr
		if code != 1 || !strings.Contains(printed, "tools_limit") || !strings.Contains(printed, "call_timeout") || strings.Count(printed, "mcp_config.json:") < 3 {
			t.Errorf("exit code %d\n%s", code, printed)
		}
		eventually(t, "the status reports the mistakes", func() error {
			_, body := d.rest("GET", "/status", "")
			if !strings.Contains(string(body), "tools_limitt") {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
		if r := a.call("call_tool_write", `{"name":"m:plain","args":{"n":1}}`); r.IsError {
			t.Errorf("the previous configuration is no longer applied: %+v", r)
		}
		d.writeConfig(string(good))
		eventually(t, "the status reports no mistake", func() error {
			_, body := d.rest("GET", "/status", "")
			if strings.Contains(string(body), "config_error") {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
	})
	t.Run("no daemon", func(t *testing.T) {
		other := &daemon{t: t, dir: t.TempDir()}
		if code, _, stderr := other.cli("tools", "list"); code != 4 || !strings.Contains(stderr, "Hint: ") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
}

func TestWebPagesAreKeptOutOfEverySurface(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{}`)
	for _, path := range []string{"/mcp", "/api/v1/status", "/api/v1/openapi.json", "/healthz", "/readyz", "/", "/nothing"} {
		for _, header := range []struct{ host, origin string }{
			{"evil.example", ""}, {"127.0.0.1.evil.example:8080", ""}, {"", "http://evil.example"}, {"", "null"}, {"", "http://localhost:1"},
		} {
			req, err := http.NewRequest(http.MethodGet, "http://"+d.address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-API-Key", d.key())
			if header.host != "" {
				req.Host = header.host
			}
			if header.origin != "" {
				req.Header.Set("Origin", header.origin)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %+v: status %d", path, header, resp.StatusCode)
			}
		}
	}
}

// TestUnambiguousMistakesAreAccepted: if the client's intention is certain, the call reaches the server with exactly
// the intended bytes, on every endpoint. Arguments outside the args object reach no server.
func TestUnambiguousMistakesAreAccepted(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, strictTool)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:plain")
	const sent = `{ "n": 1 }`
	text := fmt.Sprintf("%q", sent)
	for _, a := range []*agent{d.legacy(), d.stateless()} {
		for _, arguments := range []string{
			`{"name":" m:plain\n","args":` + text + `}`,
			`{"name":"m: plain","args_json":` + sent + `,"args":""}`,
			`{"name":"m:plain","args_json":` + text + `,"args":null,"intent":"write"}`,
			`{"name":"m:plain","args":` + sent + `,"intent_operation_type":"write","intent":{"intent_operation_type":"write"},"more":1}`,
		} {
			if r := a.call("call_tool_write", arguments); r.IsError || r.text() != "got "+sent {
				t.Errorf("%s: %+v", arguments, r)
			}
		}
		calls := upstream.calls.Load()
		r := a.call("call_tool_write", `{"name":"m:plain","n":1}`)
		if p := r.refusal(t); p.Code != "INVALID_ARGS" || !strings.HasSuffix(r.text(), `Call again with "args": {"n":1} instead.`) || upstream.calls.Load() != calls {
			t.Errorf("%s", r.text())
		}
	}
	for _, body := range []string{
		`{"tool_variant":"call_tool_write","name":" m:plain ","args":` + text + `}`,
		`{"tool_variant":"call_tool_write","name":"m:plain","args":` + sent + `,"intent":"write"}`,
		`{"tool_variant":"call_tool_write","name":"m:plain","args":` + sent + `,"intent":{"intent_operation_type":"write","operation_type":""}}`,
	} {
		if status, answer := d.rest("POST", "/tools/call", body); status != http.StatusOK || !strings.Contains(string(answer), `"got { \"n\": 1 }"`) {
			t.Errorf("rest: %s: %d %s", body, status, answer)
		}
	}
	if exit, stdout, stderr := d.cli("call", "tool-write", " m:plain", "--args", text); exit != 0 || strings.TrimSpace(stdout) != "got "+sent {
		t.Errorf("cli: %d %s%s", exit, stdout, stderr)
	}
}
