//go:build unix

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// TestFailureMessages: users see the failure with the server's last output, agents without it, and no one sees a library's
// error text.
func TestFailureMessages(t *testing.T) {
	t.Parallel()
	const canary = "zqcanary"
	answers := func(status int, header, value, body string) Spec {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return Spec{Transport: HTTP, URL: s.URL}
	}
	shell := func(script string) Spec {
		return Spec{Transport: Stdio, Command: "/bin/sh", Args: []string{"-c", script}, Secrets: []string{"s3cr3t-value"}}
	}
	for name, c := range map[string]struct {
		spec           Spec
		agents, people string
	}{
		"exit":     {shell("echo first >&2; echo " + canary + " s3cr3t-value \x1b[31m >&2; exit 3"), "EXITED: exit status 3", `exit status 3: ` + canary + ` [masked] \x1b[31m`},
		"no words": {shell("exit 0"), "EXITED: exit status 0", "exit status 0"},
		"killed":   {shell("kill -9 $$"), "EXITED: signal: killed", "signal: killed"},
		"absent": {Spec{Transport: Stdio, Command: "/nonexistent/" + canary}, "NOT_STARTED: its command is not found",
			`the command "/nonexistent/` + canary + `" is not found`},
		"nowhere": {Spec{Transport: Stdio, Command: "/bin/sh", Dir: "/nonexistent/" + canary}, "NO_DIRECTORY: its working directory does not exist",
			`its working directory "/nonexistent/` + canary + `" does not exist`},
		"forbidden": {answers(403, "Content-Type", "text/plain", canary), "FORBIDDEN: the server refuses access (403)", "the server refuses access (403)"},
		"no host":   {Spec{Transport: HTTP, URL: "http://" + canary + ".invalid/"}, "UNKNOWN_HOST: its host name is not known", `the host name "` + canary + `.invalid" is not known`},
		"directory": {Spec{Transport: Stdio, Command: "/"}, "NOT_STARTED: its command is not executable", `the command "/" is not executable`},
		"status": {answers(503, "Content-Type", "text/plain", canary), "HTTP_STATUS: the server answered with HTTP status 503 Service Unavailable",
			"the server answered with HTTP status 503 Service Unavailable"},
		"login":   {answers(401, "WWW-Authenticate", "Bearer "+canary, canary), "LOGIN_NEEDED: the server asks for a login (401)", "the server asks for a login (401)"},
		"refused": {Spec{Transport: HTTP, URL: "http://127.0.0.1:1/" + canary}, "UNREACHABLE: nothing answers at its address", "nothing answers at its address 127.0.0.1:1: the connection was refused"},
		"private": {Spec{Transport: HTTP, URL: "http://169.254.1.1/" + canary}, "UNREACHABLE: its address may not be dialled", "the address 169.254.1.1 is not asked: it is not a public internet address"},
		"error":   {answers(200, "Content-Type", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"`+canary+`"}}`), "", ""},
		"page":    {answers(200, "Content-Type", "text/html; "+canary, canary), "CONNECTION: the answer (status 200) is neither JSON nor an event stream", ""},
		"nothing": {answers(200, "Content-Type", "application/json", canary), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.spec.Name = "s"
			f.ApplySpecs([]Spec{c.spec})
			_, err := f.call("s", "x", "{}")
			p, ok := err.(*problem.Problem)
			if !ok {
				t.Fatal(err)
			}
			_, _, opened := f.Converse(t.Context(), "s", session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize, Params: json.RawMessage(hello)})
			_, relayed := f.Relay(t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: "prompts/list"})
			var s State
			f.until(t, "it has failed", func() bool { s = f.last("s"); return s.Failure.Code != "" })
			if c.agents != "" && (s.Failure.String() != c.agents || p.Detail("last_error") != c.agents) {
				t.Errorf("to agents: %q, %v", s.Failure, p.Detail("last_error"))
			}
			if c.people != "" && s.LastError != c.people {
				t.Errorf("to people: %q", s.LastError)
			}
			for _, err := range []error{p, opened, relayed} {
				text, _ := json.Marshal(err)
				if strings.Contains(string(text)+s.Failure.String(), canary) {
					t.Errorf("an agent sees the server's text: %s", text)
				}
				if foreign.MatchString(string(text) + s.LastError) {
					t.Errorf("a library's error text: %s, %s", text, s.LastError)
				}
			}
		})
	}
}

// foreign matches error texts of Go's standard library.
var foreign = regexp.MustCompile(`context |deadline|dial tcp|fork/exec|executable file|\$PATH|EOF|invalid character|net/http|connect: `)
