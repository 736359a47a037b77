package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"net/http"
	"strconv"
	"testing"

	"mcpproxy/internal/problem"
)

// declared returns the codes that code.go declares, by name.
func declared(t *testing.T) map[string]problem.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]problem.Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok || types.ExprString(call.Fun) != "declareCode" {
			return true
		}
		text, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[spec.Names[0].Name] = problem.Code(text)
		return true
	})
	if len(found) < 30 {
		t.Fatalf("found only %d codes in code.go", len(found))
	}
	return found
}

// TestEveryCodeIsMapped checks that every code is declared once and has a valid mapping. A code without a mapping would
// be reported as an internal error.
func TestEveryCodeIsMapped(t *testing.T) {
	seen := map[problem.Code]string{}
	for name, code := range declared(t) {
		if !code.Known() {
			t.Errorf("%s (%s) is not in the table", name, code)
		}
		if other, twice := seen[code]; twice {
			t.Errorf("%s and %s have the same code %s", name, other, code)
		}
		seen[code] = name
		if code.HTTPStatus() != 499 && http.StatusText(code.HTTPStatus()) == "" || code.HTTPStatus() < 400 {
			t.Errorf("%s: HTTP status = %d", code, code.HTTPStatus())
		}
		if rpc := code.JSONRPC(); rpc != -32600 && rpc != -32602 && rpc != -32603 {
			t.Errorf("%s: JSON-RPC code = %d", code, rpc)
		}
	}
}

// TestExitCodes compares the exit codes with the documented ones: 1 failed, 2 invalid usage, 3 rejected by policy, 4
// daemon not reachable, 5 not found, 6 login required, 7 timed out or overloaded, 130 interrupted.
func TestExitCodes(t *testing.T) {
	groups := map[int][]problem.Code{
		1:   {problem.UpstreamError, problem.InvalidConfig, problem.Internal, problem.Conflict, problem.Unhealthy, problem.Unproven},
		2:   {problem.InvalidName, problem.InvalidArgs, problem.SelectInvalid, problem.ArgsMismatch, problem.InvalidParameter, problem.InvalidRequest, problem.TooLarge, problem.Ambiguous, problem.Usage},
		3:   {problem.InsufficientScope, problem.InvalidOperationType, problem.InvalidSensitivity, problem.ReasonTooLong, problem.IntentMismatch, problem.MissingIntent, problem.MissingOperationType, problem.ServerMismatch, problem.ArgumentMismatch, problem.ApprovalPending, problem.ApprovalDenied, problem.CallsPaused, problem.ToolLocked, problem.OfferLocked, problem.OutOfScope, problem.Unauthorized, problem.Forbidden, problem.PresenceRequired, problem.PermissionsDiffer},
		4:   {problem.DaemonNotRunning},
		5:   {problem.ServerNotFound, problem.ToolNotFound, problem.NotFound, problem.ResultGone},
		6:   {problem.LoginNeeded},
		7:   {problem.ServerUnavailable, problem.Timeout, problem.Overloaded, problem.RateLimited, problem.AuditUnavailable},
		130: {problem.Interrupted},
	}
	total := 0
	for exit, codes := range groups {
		total += len(codes)
		for _, code := range codes {
			if code.ExitCode() != exit {
				t.Errorf("%s: exit code = %d, want %d", code, code.ExitCode(), exit)
			}
		}
	}
	if n := len(declared(t)); total != n {
		t.Errorf("the test lists %d codes, want all %d", total, n)
	}
}

func TestHTTPStatus(t *testing.T) {
	for code, want := range map[problem.Code]int{
		problem.InvalidParameter: 400, problem.InvalidName: 400, problem.InvalidArgs: 400, problem.InvalidRequest: 400,
		problem.Unauthorized: 401, problem.Forbidden: 403, problem.IntentMismatch: 403, problem.ServerMismatch: 403, problem.ArgumentMismatch: 403, problem.ToolLocked: 403, problem.OutOfScope: 403,
		problem.ServerNotFound: 404, problem.ToolNotFound: 404, problem.NotFound: 404, problem.TooLarge: 413, problem.ArgsMismatch: 422,
		problem.Internal: 500, problem.UpstreamError: 502, problem.ServerUnavailable: 503, problem.Overloaded: 503, problem.AuditUnavailable: 503, problem.Timeout: 504,
	} {
		if code.HTTPStatus() != want {
			t.Errorf("%s: HTTP status = %d, want %d", code, code.HTTPStatus(), want)
		}
	}
}

func TestUnknownCodeIsInternal(t *testing.T) {
	for _, code := range []problem.Code{"", "NO_SUCH_CODE", "intent_mismatch"} {
		if code.Known() || code.HTTPStatus() != 500 || code.ExitCode() != 1 || code.JSONRPC() != -32603 {
			t.Errorf("%q: known = %v, HTTP status = %d, exit code = %d, JSON-RPC code = %d", code, code.Known(), code.HTTPStatus(), code.ExitCode(), code.JSONRPC())
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		name string
		p    *problem.Problem
		want string
	}{
		{"message only", problem.New(problem.Timeout, "It took too long", ""), `{"code":"TIMEOUT","message":"It took too long"}`},
		{"with a hint", problem.Newf(problem.InvalidArgs, "args is %q", "x").WithHint("Give an object."),
			`{"code":"INVALID_ARGS","message":"args is \"x\"","hint":"Give an object."}`},
		{"details in the order given", problem.New(problem.ToolLocked, "m", "h").With("z", 1).With("a", []string{"b"}).With("n", nil),
			`{"code":"TOOL_LOCKED","message":"m","hint":"h","details":{"z":1,"a":["b"],"n":null}}`},
		{"the cause is not shown", problem.New(problem.Internal, "m", "").Because(errors.New("the secret")), `{"code":"INTERNAL","message":"m"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(c.p)
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
	details := json.RawMessage(`{"z":1,"a\u002f":["b"],"n":null}`)
	var read problem.Details
	if err := json.Unmarshal(details, &read); err != nil || len(read) != 3 || read[1].Key != "a/" {
		t.Errorf("Unmarshal gave %v, %v", read, err)
	}
	for i := range details {
		details[i] = 'x' // the caller may reuse the buffer
	}
	if got, err := json.Marshal(read); err != nil || string(got) != `{"z":1,"a/":["b"],"n":null}` {
		t.Errorf("the details changed with the buffer they were read from: %s, %v", got, err)
	}
	for _, wrong := range []string{`7`, `["a"]`} {
		if err := json.Unmarshal([]byte(wrong), &read); err == nil {
			t.Errorf("Unmarshal accepted %s as details", wrong)
		}
	}
	if got, err := json.Marshal(problem.Details(nil)); err != nil || string(got) != "{}" {
		t.Errorf("Marshal of nil details = %s, %v, want {}", got, err)
	}
	if _, err := json.Marshal(problem.New(problem.Internal, "m", "").With("f", func() {})); err == nil {
		t.Error("a detail that cannot be encoded caused no error")
	}
}

func TestFrom(t *testing.T) {
	if problem.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	p := problem.New(problem.Timeout, "m", "")
	if problem.From(p) != p || problem.From(fmt.Errorf("call: %w", p)) != p {
		t.Error("From did not return the Problem that the error is or wraps")
	}
	other := problem.From(io.ErrUnexpectedEOF)
	if other.Code != problem.Internal || !errors.Is(other, io.ErrUnexpectedEOF) || other.Hint == "" {
		t.Errorf("got %+v", other)
	}
	if text, _ := json.Marshal(other); string(text) == "" || errors.Is(other, io.EOF) {
		t.Errorf("got %s", text)
	}
	if other.Error() == io.ErrUnexpectedEOF.Error() {
		t.Error("the message is the text of an internal error")
	}
}

func TestDetail(t *testing.T) {
	p := problem.New(problem.Timeout, "m", "").With("a", 1).With("b", "x")
	if p.Detail("a") != 1 || p.Detail("b") != "x" || p.Detail("c") != nil {
		t.Errorf("got %v, %v, %v", p.Detail("a"), p.Detail("b"), p.Detail("c"))
	}
}

func TestShown(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé€", 3, "aé…"}, {"aé€", 4, "aé…"}, {"a\xff", 3, "a\uFFFD"}, {"a\xffbc", 3, "a\uFFFDb…"},
	} {
		if got := problem.ClipForDisplay(c.text, c.most); got != c.want {
			t.Errorf("ClipForDisplay(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
