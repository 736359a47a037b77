package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

const callPath = Prefix + "/tools/call"

func TestCallReachesTheGatewayUnchanged(t *testing.T) {
	t.Parallel()
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[],"n":9007199254740993}`), ActivityID: "01A", Warnings: []string{"careful"}}}
	s := serve(t, f)
	args := `{"b": 1.0, "a":9007199254740993,  "é":"\u00e9"}`
	body := `{"tool_variant":"call_tool_write","name":"github:a/b:c","args":` + args + `,"intent":{"operation_type":"write","intent_reason":"why","data_sensitivity":"private","more":1},"timeout":"1m30s"}`
	r := ask(t, s, "POST", callPath, body, "User-Agent", "curl/8.5.0 (x)", SourceHeader, "ui", "X-Request-Id", "req-1")
	want := `{"result":{"content":[],"n":9007199254740993},"is_error":false,"warnings":["careful"],"activity_id":"01A"}`
	if r.status != 200 || strings.TrimSpace(r.body) != want {
		t.Errorf("%d %s", r.status, r.body)
	}
	got := f.lastCall(t)
	if string(got.Args) != args {
		t.Errorf("args = %s", got.Args)
	}
	if got.Caller.Origin == "" {
		t.Error("the caller has no Origin")
	}
	got.Args, got.Caller.Origin = nil, ""
	if diff := cmp.Diff(gate.LaneCall{
		CallTool: policy.CallToolWrite, Name: "github:a/b:c", RequestBytes: len(body), Timeout: 90 * time.Second,
		Declared: policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: "write", HasReason: true, Reason: "why", HasSensitivity: true, DataSensitivity: "private"},
		Caller: ops.Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: activity.SourceUI, RequestID: "req-1",
			ClientName: "curl", ClientVersion: "8.5.0"},
	}, got, cmpopts.IgnoreUnexported(policy.DeclaredIntent{})); diff != "" {
		t.Error(diff)
	}
}

// The arguments may be JSON text, as on MCP.
func TestArgumentsAsText(t *testing.T) {
	t.Parallel()
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[]}`)}}
	r := ask(t, serve(t, f), "POST", callPath, `{"tool_variant":"call_tool_read","name":"a:b","args_json":"{\"n\":1}","args":null}`)
	if got := f.lastCall(t); r.status != 200 || got.Args != nil || string(got.ArgsJSON) != `"{\"n\":1}"` {
		t.Errorf("%d %s: %s, %s", r.status, r.body, got.Args, got.ArgsJSON)
	}
}

func TestCallWithoutExtras(t *testing.T) {
	t.Parallel()
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[],"isError":true}`), IsError: true, Handle: "h"}}
	r := ask(t, serve(t, f), "POST", callPath, `{"tool_variant":"call_tool_read","name":""}`, SourceHeader, "mcp", "Content-Type", "application/json; charset=utf-8")
	if r.status != 200 || !strings.Contains(r.body, `"is_error":true`) || !strings.Contains(r.body, `"warnings":[]`) || !strings.Contains(r.body, `"handle":"h"`) {
		t.Errorf("a failure of the tool itself: %d %s", r.status, r.body)
	}
	got := f.lastCall(t)
	if got.Args != nil || got.Declared.Present || got.Caller.Source != activity.SourceREST || len(got.Caller.RequestID) < 16 {
		t.Errorf("call = %+v", got)
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	for code, status := range map[problem.Code]int{
		problem.ServerMismatch: 403, problem.IntentMismatch: 403, problem.MissingIntent: 400, problem.ToolNotFound: 404, problem.ArgsMismatch: 422,
		problem.ToolLocked: 403, problem.Timeout: 504, problem.Overloaded: 503, problem.UpstreamError: 502, problem.AuditUnavailable: 503,
	} {
		p := problem.New(code, "Tool 'x' is <marked>", "do that").With("status", "disabled_by_config")
		f := &fake{answer: gate.CallResult{ActivityID: "01B"}, failure: fmt.Errorf("call: %w", p)}
		r := ask(t, serve(t, f), "POST", callPath, `{"tool_variant":"call_tool_read","name":"github:x"}`)
		d := problemOf(t, r)
		if r.status != status || d.Code != code || d.Detail != p.Message || d.Hint != p.Hint || d.Details["status"] != "disabled_by_config" || d.ActivityID != "01B" {
			t.Errorf("%s: %d %s", code, r.status, r.body)
		}
	}
}

func TestBadBodies(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	for name, c := range map[string]struct {
		body string
		code problem.Code
		says string
	}{
		"empty":               {" ", problem.InvalidRequest, ""},
		"not JSON":            {"{", problem.InvalidRequest, ""},
		"not an object":       {"[]", problem.InvalidRequest, "not a JSON object"},
		"two values":          {"{}{}", problem.InvalidRequest, ""},
		"duplicate member":    {`{"name":"a:b","name":"a:c","tool_variant":"call_tool_read"}`, problem.InvalidRequest, "duplicate"},
		"case variant":        {`{"name":"a:b","NAME":"a:c","tool_variant":"call_tool_read"}`, problem.InvalidRequest, ""},
		"duplicate in args":   {`{"name":"a:b","tool_variant":"call_tool_read","args":{"x":1,"x":2}}`, problem.InvalidRequest, "duplicate"},
		"invalid UTF-8":       {"{\"name\":\"\xff\",\"tool_variant\":\"call_tool_read\"}", problem.InvalidRequest, ""},
		"too deep":            {`{"name":"a:b","tool_variant":"call_tool_read","args":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101), problem.InvalidRequest, ""},
		"no variant":          {`{"name":"a:b"}`, problem.InvalidParameter, "tool_variant"},
		"unknown variant":     {`{"name":"a:b","tool_variant":"call_tool"}`, problem.InvalidParameter, "call_tool_read"},
		"variant not a text":  {`{"name":"a:b","tool_variant":1}`, problem.InvalidParameter, "tool_variant"},
		"name not a text":     {`{"name":["a:b"],"tool_variant":"call_tool_read"}`, problem.InvalidParameter, "name"},
		"unknown member":      {`{"name":"a:b","tool_variant":"call_tool_read","arguments":{}}`, problem.InvalidRequest, "arguments"},
		"bad timeout":         {`{"name":"a:b","tool_variant":"call_tool_read","timeout":"soon"}`, problem.InvalidParameter, "timeout"},
		"negative timeout":    {`{"name":"a:b","tool_variant":"call_tool_read","timeout":"-1s"}`, problem.InvalidParameter, "timeout"},
		"larger than allowed": {`{"name":"a:b","tool_variant":"call_tool_read","args":{"x":"` + strings.Repeat("x", maxBody) + `"}}`, problem.TooLarge, "5242880"},
	} {
		r := ask(t, s, "POST", callPath, c.body)
		d := problemOf(t, r)
		if d.Code != c.code || !strings.Contains(d.Detail, c.says) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
		if len(r.body) > 2000 {
			t.Errorf("%s: the answer has %d bytes", name, len(r.body))
		}
	}
	if len(f.calls) != 0 {
		t.Errorf("%d of these calls reached the gateway", len(f.calls))
	}
}

// The OpenAPI document and the policy have the same limit for the length of a reason.
func TestLongestReason(t *testing.T) {
	t.Parallel()
	f, _ := reflect.TypeFor[CallIntent]().FieldByName("Reason")
	if got := f.Tag.Get("maxLength"); got != strconv.Itoa(policy.MaxReason) {
		t.Errorf("maxLength is %s in the document, %d in the policy", got, policy.MaxReason)
	}
}

// TestLateBody checks that a body that does not arrive in time is rejected, and that the error names the limit.
func TestLateBody(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", callPath, iotest.ErrReader(fmt.Errorf("read: %w", os.ErrDeadlineExceeded)))
	r.Header.Set("Content-Type", "application/json")
	_, err := readJSONBody(r)
	if p := problem.From(err); p.Code != problem.InvalidRequest || !strings.Contains(p.Message, "within 10s") || p.Detail("limit") != "10s" {
		t.Errorf("%v", err)
	}
}
