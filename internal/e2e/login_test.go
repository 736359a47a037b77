package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// logIn runs `upstream login` and acts as the user's browser.
func (d *daemon) logIn(server string) (code int, stderr string) {
	d.t.Helper()
	cmd := exec.Command(binary, "upstream", "login", server, "--no-browser", "--config", d.configPath(), "--data-dir", d.dataDir())
	cmd.Env = d.environ()
	var notes bytes.Buffer
	cmd.Stderr = &notes
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		resp, err := http.Get(lines.Text())
		if err != nil {
			d.t.Errorf("the browser: %v", err)
		} else {
			resp.Body.Close()
		}
	}
	for lines.Scan() {
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), notes.String()
}

func (d *daemon) awaitState(server, want string) {
	d.t.Helper()
	eventually(d.t, server+" is "+want, func() error {
		s, err := d.server(server)
		if err == nil && s.State != want {
			err = fmt.Errorf("it is %s", s.State)
		}
		return err
	})
}

// TestLogin runs a complete login: a call that needs it, the login, calls, a restart, a step-up, an expired token and a
// logout. No client sees a token, and no token is stored in plain text.
func TestLogin(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	login := mcptest.StartLoginServer(t, upstream)
	config := fmt.Sprintf(`{"mcpServers": {"tickets": {"url": %q}}}`, login.URL)
	d := startDaemon(t, config, noKeyring)
	d.awaitState("tickets", "needs_login")

	_, list, _ := d.cli("upstream", "list")
	if !strings.Contains(list, "needs login") || !strings.Contains(list, "mcpproxy login tickets") {
		t.Errorf("upstream list:\n%s", list)
	}
	if _, status, more := d.cli("status"); !strings.Contains(status+more, "mcpproxy login tickets") {
		t.Errorf("status:\n%s%s", status, more)
	}

	// A call reports the missing login, although the tools are not known yet.
	code, _, stderr := d.cli("call", "tool-read", "tickets:echo")
	if code != 6 || !strings.Contains(stderr, "mcpproxy login tickets") {
		t.Errorf("a call before the login: exit code %d, %s", code, stderr)
	}
	if p := d.legacy().call("call_tool_read", `{"name":"tickets:echo"}`).refusal(t); p.Code != "LOGIN_NEEDED" {
		t.Errorf("a call before the login: %+v", p)
	}

	// A login that is denied fails, and the next one works.
	login.ChangeRules(func(r *mcptest.LoginRules) { r.Deny = "access_denied" })
	if code, stderr := d.logIn("tickets"); code != 6 || !strings.Contains(stderr, "access_denied") {
		t.Errorf("a denied login: exit code %d, %s", code, stderr)
	}
	login.ChangeRules(func(r *mcptest.LoginRules) { r.Deny = "" })
	if code, stderr := d.logIn("tickets"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	d.awaitTools("tickets:echo")
	if len(login.RequestsTo("/register")) != 1 {
		t.Errorf("registered %d times", len(login.RequestsTo("/register")))
	}
	call := func() (code int, out string) {
		code, stdout, stderr := d.cli("call", "tool-read", "tickets:echo", "--args", `{"a":1}`)
		return code, stdout + stderr
	}
	if code, out := call(); code != 0 || !strings.Contains(out, `got {"a":1}`) {
		t.Errorf("exit code %d, %s", code, out)
	}

	// The login survives a restart of the daemon, even after a kill.
	d.kill()
	d.start()
	d.awaitState("tickets", "ready")
	if code, out := call(); code != 0 {
		t.Errorf("after a restart: exit code %d, %s", code, out)
	}

	// Step-up: a call requires an additional scope.
	login.ChangeRules(func(r *mcptest.LoginRules) { r.Scope = "write" })
	if code, out := call(); code != 6 || !strings.Contains(out, "mcpproxy login tickets") {
		t.Errorf("without the scope: exit code %d, %s", code, out)
	}
	if code, stderr := d.logIn("tickets"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	asked := login.RequestsTo("/authorize")
	if got := asked[len(asked)-1].Form.Get("scope"); got != "read write" {
		t.Errorf("the step-up requests %q", got)
	}
	eventually(t, "the call works", func() error {
		if code, out := call(); code != 0 {
			return fmt.Errorf("exit code %d, %s", code, out)
		}
		return nil
	})

	if code, _, stderr := d.cli("upstream", "logout", "tickets"); code != 0 {
		t.Errorf("logout: %s", stderr)
	}
	d.awaitState("tickets", "needs_login")
	if len(login.RequestsTo("/revoke")) != 1 {
		t.Error("the authorization server was not told")
	}
	// Removing a server deletes its login.
	if code, stderr := d.logIn("tickets"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := d.cli("upstream", "remove", "tickets", "--yes"); code != 0 {
		t.Errorf("remove: %s", stderr)
	}
	if len(login.RequestsTo("/revoke")) != 2 {
		t.Error("the authorization server was not told of the removal")
	}
	d.checkLoginRecords()
	d.checkNoTokens(login)
}

// checkLoginRecords checks the records of logins and logouts.
func (d *daemon) checkLoginRecords() {
	d.t.Helper()
	_, body := d.rest("GET", "/activity?type=server_change&server=tickets", "")
	var log struct {
		Activities []struct {
			Actor    string
			Metadata struct{ Action string }
		}
	}
	if err := json.Unmarshal(body, &log); err != nil {
		d.t.Fatal(err)
	}
	var actions []string
	for _, a := range log.Activities {
		if a.Metadata.Action == "login" || a.Metadata.Action == "logout" {
			actions = append(actions, a.Actor+" "+a.Metadata.Action)
		}
	}
	if got := strings.Join(actions, ", "); got != "admin login, admin logout, admin login, admin login" {
		d.t.Errorf("records: %s", got)
	}
}

// checkNoTokens searches all stored data and all output for tokens and codes.
func (d *daemon) checkNoTokens(login *mcptest.LoginServer) {
	d.t.Helper()
	d.stop()
	secrets := []string{"access-", "refresh-", "code-"}
	for _, a := range login.RequestsTo("/token") {
		secrets = append(secrets, a.Form.Get("code_verifier"))
	}
	for _, a := range login.RequestsTo("/authorize") {
		secrets = append(secrets, a.Form.Get("state"))
	}
	texts := map[string][]byte{"stderr": []byte(d.stderr.String())}
	eachFile(d.t, d.dataDir(), func(path string, content []byte) { texts[path] = content })
	for name, text := range texts {
		for _, s := range secrets {
			if s != "" && bytes.Contains(text, []byte(s)) {
				d.t.Errorf("%s contains %q", name, s)
			}
		}
	}
}

// A login that cannot start reports the reason. An agent cannot start a login.
func TestLoginCannotStart(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t)
	login := mcptest.StartLoginServer(t, upstream)
	login.ChangeMetadata("/.well-known/oauth-authorization-server/as", map[string]any{"authorization_endpoint": "javascript:alert(1)"})
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {
		"hostile": {"url": %q},
		"keyed": {"url": %q, "headers": {"Authorization": "Bearer own-token-of-mine"}},
		"local": {"command": "true"},
	}}`, login.URL, login.URL), noKeyring)
	d.awaitState("hostile", "needs_login")
	for server, want := range map[string]string{"hostile": "authorization_endpoint", "keyed": "does not support a login", "local": "does not support a login", "none": "not found"} {
		code, stdout, stderr := d.cli("upstream", "login", server)
		if code == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s%s", server, code, stdout, stderr)
		}
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+d.address+"/api/v1/servers/hostile/login", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: status %d", resp.StatusCode)
	}
}
