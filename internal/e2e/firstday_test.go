//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// TestStatusReportsFailures: status names each server that is not ready, with the reason, and omits it as soon as the
// server is ready.
func TestStatusReportsFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	npx := filepath.Join(dir, "npx")
	if err := mcptest.WriteProgram(npx, []byte("#!/bin/sh\necho fetching >&2\nexec sleep 60\n")); err != nil {
		t.Fatal(err)
	}
	command, env := mcptest.ChildCommand(t, "zoo")
	flaky := fmt.Sprintf(`echo >> %[1]s/tries; [ $(wc -l < %[1]s/tries) -gt 2 ] && exec %[2]s; echo not yet >&2; exit 4`, dir, command)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"dead":   map[string]any{"command": "sh", "args": []string{"-c", `printf 'one\nthe \033[31mend\n' >&2; exit 3`}},
		"absent": map[string]any{"command": "no-such-command-here"},
		"gone":   map[string]any{"url": "http://127.0.0.1:1/mcp"},
		"slow":   map[string]any{"command": npx, "args": []string{"-y", "x"}},
		"flaky":  map[string]any{"command": "sh", "args": []string{"-c", flaky}, "env": env},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	var status string
	eventually(t, "status reports the failures", func() error {
		_, status, _ = d.cli("status")
		for _, want := range []string{
			`dead    failed, exit status 3: the \x1b[31mend; see ` + "`mcpproxy upstream logs dead`",
			`absent  failed, the command "no-such-command-here" is not found; see `,
			`gone    failed, nothing answers at its address 127.0.0.1:1: the connection was refused; see `,
		} {
			if !strings.Contains(status, want) {
				return errors.New(status)
			}
		}
		if !regexp.MustCompile(`slow    installing with npx, \d+ s`).MatchString(status) || strings.Contains(status, "flaky") {
			return errors.New(status)
		}
		return nil
	})
	// The server may be on its next attempt. The list then shows the error of the last one.
	_, list, _ := d.cli("upstream", "list")
	if strings.Contains(list, "waiting") || !regexp.MustCompile(`dead +stdio +(failed +0 +|connecting +0 +starting, .*; the last try failed .* ago, )exit status 3: the `).MatchString(list) {
		t.Error(list)
	}
	type view struct {
		State     string
		Step      string
		Detail    string
		LastError string `json:"last_error"`
		At        string `json:"last_error_at"`
		Failure   string
		Restarts  int
	}
	server := func(name string) (v view) {
		_, body := d.rest("GET", "/servers/"+name, "")
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	eventually(t, "the failed attempt has a time", func() error {
		if v := server("dead"); v.State != "failed" || v.At == "" || v.Failure != "EXITED: exit status 3" {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	if v := server("flaky"); v.State != "ready" || v.LastError != "" || v.At != "" || v.Detail != "" || v.Failure != "" {
		t.Errorf("a solved problem is still reported: %+v", v)
	}
	if v := server("slow"); v.State != "connecting" || v.Step != "installing" {
		t.Errorf("%+v", v)
	}
	_, body := d.rest("GET", "/status", "")
	var s struct {
		Servers struct {
			NotReady []struct{ Name, State, Detail string } `json:"not_ready"`
		}
	}
	if err := json.Unmarshal(body, &s); err != nil || len(s.Servers.NotReady) != 4 {
		t.Errorf("%v: %s", err, body)
	}
}

// TestStopWaitsForPackageManager: a stop waits until a package manager has rolled back its installation. This is still
// a clean stop, and everything is recorded.
func TestStopWaitsForPackageManager(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("process activity is visible only on Linux")
	}
	dir := t.TempDir()
	npx, began, undone := filepath.Join(dir, "npx"), filepath.Join(dir, "began"), filepath.Join(dir, "undone")
	script := fmt.Sprintf("#!/bin/sh\ntrap 'sleep 3; echo > %s; exit 1' TERM\necho > %s\nwhile :; do sleep 0.05; done\n", undone, began)
	if err := mcptest.WriteProgram(npx, []byte(script)); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"slow": {"command": %q, "args": ["-y", "x"]}}}`, npx))
	eventually(t, "the installation runs", func() error {
		_, err := os.Stat(began)
		return err
	})
	d.stop() // requires exit code 0
	if _, err := os.Stat(undone); err != nil {
		t.Error("the package manager was killed while it rolled back")
	}
	// The supervisor restarts the server, so the new process would survive the kill.
	if err := mcptest.WriteProgram(npx, []byte("#!/bin/sh\nexit 1\n")); err != nil {
		t.Fatal(err)
	}
	d.start()
	_, body := d.rest("GET", "/activity?type=system", "")
	if !strings.Contains(string(body), `"action":"stop"`) {
		t.Errorf("the stop is not recorded: %s", body)
	}
	d.kill()
}

// TestAgentsSeeNoServerText: if a server fails, the error that agents see contains no text that the server wrote to
// stderr or sent over HTTP.
func TestAgentsSeeNoServerText(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, canary+"03")
	}))
	t.Cleanup(web.Close)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{
		"dead": {"command": "sh", "args": ["-c", "echo %[1]s01 >&2; exit 3"]},
		"web": {"url": %[2]q},
		"garbage": {"url": "http://%[3]s/"},
	}}`, canary, web.URL, garbage(t)))
	for _, name := range []string{"dead", "web", "garbage"} {
		eventually(t, name+" has failed", func() error {
			if _, body := d.rest("GET", "/servers/"+name, ""); !strings.Contains(string(body), `"last_error"`) {
				return errors.New(string(body))
			}
			return nil
		})
		noCanary(t, name, d.everythingAnAgentSees(name))
	}
	if _, body := d.rest("GET", "/servers/dead", ""); !strings.Contains(string(body), canary+"01") {
		t.Errorf("the user does not see the server's text: %s", body)
	}
	answer := string(d.legacy().call("upstream_servers", `{"operation":"list"}`).StructuredContent)
	for _, want := range []string{`"last_error":"EXITED: exit status 3"`, `"last_error":"HTTP_STATUS: the server answered with HTTP status 502 Bad Gateway"`} {
		if !strings.Contains(answer, want) {
			t.Errorf("agents do not see %s: %s", want, answer)
		}
	}
}

// garbage returns the address of a server that does not speak HTTP.
func garbage(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 %[1]s04 %[1]s05\r\n%[1]s06\r\n\r\n%[1]s07", canary)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// TestNoNetworkIsReportedAtOnce: if the registry cannot be reached, the user sees this at once, although the package
// manager retries silently for minutes.
func TestNoNetworkIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	npx := filepath.Join(t.TempDir(), "npx")
	if err := mcptest.WriteProgram(npx, []byte("#!/bin/sh\nwhile :; do sleep 0.05; done\n")); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, `{"mcpServers": {}}`)
	shut := freeAddress(t)
	code, out, stderr := d.cli("upstream", "add", "slow", "--env", "npm_config_registry=http://"+shut, "--", npx, "-y", "x")
	if text := out + stderr; code == 0 || !strings.Contains(text, "127.0.0.1 cannot be reached, is the network down?") {
		t.Errorf("add: %d %s", code, text)
	}
	for _, command := range [][]string{{"upstream", "get", "slow"}, {"status"}} {
		if _, out, _ := d.cli(command...); !strings.Contains(out, "127.0.0.1 cannot be reached, is the network down?") {
			t.Errorf("%v: %s", command, out)
		}
	}
	if code, _, stderr := d.cli("upstream", "remove", "slow", "--yes"); code != 0 {
		t.Error(stderr)
	}
}
