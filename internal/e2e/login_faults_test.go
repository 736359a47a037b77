package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/testutil/authtest"
	"mcpproxy/internal/testutil/mcptest"
)

// loginServer is a server of a daemon whose login breaks.
type loginServer struct {
	*daemon
	name     string
	provider *authtest.Provider
	server   *authtest.Resource
	upstream *fakeUpstream
	events   *listener
}

// logInWith runs `mcpproxy login` and does with each printed address what browse does.
func (d *daemon) logInWith(stdin io.Reader, browse func(page string), args ...string) (code int, notes string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"login", "--config", d.configPath(), "--data-dir", d.dataDir()}, args...)...)
	cmd.Env, cmd.Stdin = d.environ(), stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http") {
			browse(lines.Text())
		}
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// open opens a page as the browser on the daemon's machine.
func (d *daemon) open(page string) {
	d.t.Helper()
	resp, err := http.Get(page)
	if err != nil {
		d.t.Errorf("the browser: %v", err)
		return
	}
	resp.Body.Close()
}

func (s *loginServer) mustLogIn() {
	s.t.Helper()
	if code, notes := s.logInWith(nil, s.open, s.name); code != 0 {
		s.t.Fatalf("login: exit code %d, %s", code, notes)
	}
}

// mustCall makes a call as an agent that cannot wait; it must succeed.
func (s *loginServer) mustCall() {
	s.t.Helper()
	if r := s.legacy().call("call_tool_read", fmt.Sprintf(`{"name":"%s:echo","args":{"a":1}}`, s.name)); !strings.Contains(r.text(), `got {"a":1}`) {
		s.t.Errorf("the call fails: %s", r.text())
	}
}

// waitingCall starts a call of an agent that has requested progress, and returns when the agent was told about the wait.
// The returned function waits for the end of the call.
func (s *loginServer) waitingCall() (end func()) {
	s.t.Helper()
	a, told, got := s.legacy(), make(chan struct{}), make(chan string, 1)
	req, err := http.NewRequest(http.MethodPost, "http://"+s.address+"/mcp", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"%s:echo","args":{"b":2}},"_meta":{"progressToken":"p"}}}`, s.name)))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": a.session, "Mcp-Protocol-Version": legacyRevision} {
		req.Header.Set(name, value)
	}
	go func() {
		resp, err := a.client.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		var answer strings.Builder
		lines, waits := bufio.NewScanner(resp.Body), false
		for lines.Scan() {
			answer.WriteString(lines.Text())
			if !waits && strings.Contains(lines.Text(), "Waiting for the login to "+s.name) {
				waits = true
				close(told)
			}
		}
		got <- answer.String()
	}()
	select {
	case <-told:
	case answer := <-got:
		s.t.Fatalf("the call does not wait: %s", answer)
	case <-time.After(patience):
		s.t.Fatal("the agent was not told about the wait")
	}
	return func() {
		s.t.Helper()
		if answer := <-got; !strings.Contains(answer, `got {\"b\":2}`) {
			s.t.Errorf("the waiting call got %s", answer)
		}
	}
}

// seen waits until the REST view, which the UI shows, has the state of the login and the reason, and checks the CLI.
func (s *loginServer) seen(state, reason string) {
	s.t.Helper()
	eventually(s.t, s.name+" shows the login", func() error {
		_, body := s.rest("GET", "/servers/"+s.name, "")
		var v struct {
			State string
			Login *struct{ State, Reason, Remedy string }
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		if state == "" && (v.Login != nil || v.State != "ready") || state != "" && (v.Login == nil || v.Login.State != state || !strings.Contains(v.Login.Reason, reason) || !strings.Contains(v.Login.Remedy, "mcpproxy login "+s.name)) {
			return fmt.Errorf("%s %+v", v.State, v.Login)
		}
		return nil
	})
	_, detail, _ := s.cli("upstream", "get", s.name)
	if flat := strings.Join(strings.Fields(detail), " "); state != "" && (!strings.Contains(flat, reason) || !strings.Contains(flat, "mcpproxy login "+s.name)) || state == "" && strings.Contains(flat, "mcpproxy login") {
		s.t.Errorf("upstream get:\n%s", detail)
	}
}

// refused checks that the agent is refused with the reason and with what to do.
func (s *loginServer) refused(reason string) {
	s.t.Helper()
	p := s.legacy().call("call_tool_read", fmt.Sprintf(`{"name":"%s:echo"}`, s.name)).refusal(s.t)
	if p.Code != "LOGIN_NEEDED" || !strings.Contains(p.Message, reason) || !strings.Contains(p.Hint, "mcpproxy login "+s.name) {
		s.t.Errorf("the agent sees %+v", p)
	}
}

// heard waits for an event about the login, and checks that it contains only the server's name.
func (s *loginServer) heard(kind string) {
	s.t.Helper()
	eventually(s.t, kind+" of "+s.name, func() error {
		s.events.mu.Lock()
		defer s.events.mu.Unlock()
		for _, e := range s.events.events {
			if e.kind == kind && string(e.data) == fmt.Sprintf(`{"server":%q}`, s.name) {
				return nil
			}
		}
		return fmt.Errorf("not among %d events", len(s.events.events))
	})
}

// needsUser checks everything that is seen when only a login helps, and that the login heals a call that waits and calls
// after it.
func (s *loginServer) needsUser(reason string) {
	s.t.Helper()
	s.refused(reason)
	s.seen("needed", reason)
	s.heard("login.needed")
	end := s.waitingCall()
	s.mustLogIn()
	end()
	s.mustCall()
	s.seen("", "")
}

// loginFaults are the faults of logins. Each starts with a server that is logged in, unless it is one of a new server.
var loginFaults = []struct {
	name  string
	fresh bool // no one has logged in yet
	run   func(s *loginServer)
}{
	{"the access token expires in the middle of a call", false, func(s *loginServer) {
		var once sync.Once
		expire := func(method string) {
			if method == "tools/call" {
				once.Do(s.server.ExpireTokens)
			}
		}
		s.upstream.before.Store(&expire)
		s.mustCall() // it is being carried out when the token expires
		s.mustCall()
		if n := s.provider.Requests("/oauth/token"); n != 2 {
			s.t.Errorf("%d requests for a token", n)
		}
		s.seen("", "")
	}},
	{"the refresh token is revoked", false, func(s *loginServer) {
		s.provider.RevokeLogins()
		s.needsUser("the authorization server has ended the login")
	}},
	{"several servers at once", false, func(s *loginServer) {
		others := []*loginServer{s}
		servers := ""
		for i := range 3 {
			o := *s
			o.name = fmt.Sprint("several-", i)
			o.server = authtest.StartResource(s.t, s.provider, s.upstream)
			others = append(others, &o)
			servers += fmt.Sprintf(`,%q:{"url":%q}`, o.name, o.server.URL)
		}
		s.writeConfig(fmt.Sprintf(`{"listen":%q,"mcpServers":{%q:{"url":%q}%s}}`, s.address, s.name, s.server.URL, servers))
		for _, o := range others[1:] {
			o.seen("needed", "no one has logged in")
		}
		var all sync.WaitGroup
		for _, o := range others[1:] {
			all.Go(o.mustLogIn)
		}
		all.Wait()
		for _, o := range others {
			o.mustCall()
		}
		s.provider.RevokeLogins()
		for _, o := range others {
			o.refused("has ended the login")
		}
		if code, notes := s.logInWith(nil, s.open); code != 0 { // all of them
			s.t.Errorf("exit code %d, %s", code, notes)
		}
		for _, o := range others {
			o.mustCall()
			o.seen("", "")
		}
	}},
	{"the identity provider is down", false, func(s *loginServer) {
		s.provider.Stop()
		s.server.ExpireTokens()
		end := s.waitingCall()
		s.seen("retrying", "the authorization server is not available")
		if code, notes := s.logInWith(nil, s.open, s.name); code == 0 || !strings.Contains(notes, "cannot begin") {
			s.t.Errorf("a login without its provider: %d, %s", code, notes)
		}
		s.heard("login.failed")
		s.provider.Continue()
		end()
		s.mustCall()
		s.seen("", "")
	}},
	{"a machine without a browser", true, func(s *loginServer) {
		s.refused("no one has logged in")
		code, notes := s.logInWith(nil, func(page string) { authtest.Browse(s.t, page) }, s.name, "--headless")
		if code != 0 || !strings.Contains(notes, "enter the code") {
			s.t.Fatalf("device login: %d, %s", code, notes)
		}
		s.mustCall()
		s.seen("", "")
	}},
	{"an agent asks for the login", false, func(s *loginServer) {
		if code, _, notes := s.cli("upstream", "logout", s.name); code != 0 {
			s.t.Fatalf("logout: %s", notes)
		}
		if r := s.legacy().call("upstream_servers", fmt.Sprintf(`{"operation":"get","name":%q}`, s.name)); !strings.Contains(r.text(), "no one has logged in to it. The user: mcpproxy login "+s.name) {
			s.t.Errorf("upstream_servers: %s", r.text())
		}
		s.needsUser("no one has logged in")
	}},
	{"clocks differ", true, func(s *loginServer) {
		s.server.Reject(1) // the clock of the server is behind: the new token is not valid yet
		s.mustLogIn()
		s.mustCall()
		s.seen("", "")
	}},
	{"a refresh token that is valid once, and many callers", false, func(s *loginServer) {
		s.server.ExpireTokens()
		before := s.provider.Requests("/oauth/token")
		var all sync.WaitGroup
		for range 10 {
			all.Go(s.mustCall)
		}
		all.Wait()
		if n := s.provider.Requests("/oauth/token") - before; n != 1 {
			s.t.Errorf("%d renewals", n)
		}
		s.seen("", "")
	}},
	{"the provider answers with web pages", false, func(s *loginServer) {
		s.provider.SetFault(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>Sorry</html>")
		})
		s.server.ExpireTokens()
		end := s.waitingCall()
		s.seen("retrying", "the authorization server is not available")
		if _, body := s.rest("GET", "/servers/"+s.name, ""); !strings.Contains(string(body), "HTTP status 502 and a web page") || strings.Contains(string(body), "Sorry") {
			s.t.Errorf("the detail: %s", body)
		}
		s.provider.SetFault(nil)
		end()
		s.mustCall()
		s.seen("", "")
	}},
	{"the server changes its authorization server", false, func(s *loginServer) {
		old := s.provider
		s.provider = authtest.StartProvider(s.t)
		s.server.UseProvider(s.provider)
		s.refused("the server rejects a token")
		s.seen("needed", "the server rejects a token")
		end := s.waitingCall()
		code, notes := s.logInWith(nil, s.open, s.name)
		if code != 0 || !strings.Contains(notes, s.provider.URL+" instead of "+old.URL) {
			s.t.Fatalf("login: %d, %s", code, notes)
		}
		end()
		s.mustCall()
		s.seen("", "")
	}},
	{"the registration has expired", false, func(s *loginServer) {
		s.provider.ForgetClients()
		s.server.ExpireTokens()
		s.needsUser("no longer knows this client")
		if n := s.provider.Requests("/register"); n != 2 {
			s.t.Errorf("%d registrations", n)
		}
	}},
	{"a fresh token is rejected", true, func(s *loginServer) {
		s.server.Reject(-1)
		if code, notes := s.logInWith(nil, s.open, s.name); code != 6 || !strings.Contains(notes, "rejects a token that was just issued") {
			s.t.Errorf("login: %d, %s", code, notes)
		}
		s.heard("login.failed")
		before := s.provider.Requests("/oauth/token")
		for range 5 {
			s.refused("the server rejects a token that was just issued")
		}
		if n := s.provider.Requests("/oauth/token") - before; n > 1 {
			s.t.Errorf("%d requests for a token", n)
		}
		s.seen("needed", "the server rejects a token")
		s.server.Reject(0) // its administrator has repaired it
		s.mustLogIn()
		s.mustCall()
		s.seen("", "")
	}},
}

// TestLoginFaults: after each fault of a login the user, the UI, the CLI and the agent see what to do, and everything works
// again. The authorization server is zitadel/oidc. No token is written anywhere in plain text.
func TestLoginFaults(t *testing.T) {
	t.Parallel()
	var recovered atomic.Int64
	t.Run("faults", func(t *testing.T) {
		for _, fault := range loginFaults {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				s := &loginServer{name: "tickets", provider: authtest.StartProvider(t)}
				s.upstream = startUpstream(t, `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
				s.server = authtest.StartResource(t, s.provider, s.upstream)
				s.daemon = startDaemon(t, fmt.Sprintf(`{"mcpServers": {"tickets": {"url": %q}}}`, s.server.URL), noKeyring)
				ctx, leave := context.WithCancel(t.Context())
				s.events = &listener{d: s.daemon, key: s.key()}
				var listening sync.WaitGroup
				listening.Go(func() { s.events.listen(ctx) })
				defer listening.Wait()
				defer leave()
				eventually(t, "the listener is connected", func() error {
					s.events.mu.Lock()
					defer s.events.mu.Unlock()
					if s.events.opened == 0 {
						return fmt.Errorf("it is not")
					}
					return nil
				})
				s.awaitState("tickets", "needs_login")
				if !fault.fresh {
					s.mustLogIn()
					s.mustCall()
				}
				fault.run(s)
				leave()
				listening.Wait()
				s.stop()
				s.findSecrets(slices.Collect(s.server.Tokens()))
				if !t.Failed() {
					recovered.Add(1)
				}
			})
		}
	})
	t.Logf("%d of %d login faults recover as described", recovered.Load(), len(loginFaults))
	if recovered.Load() != 12 {
		t.Error("not all of them")
	}
}

// findSecrets reports secrets in stored data and in the output of the daemon.
func (d *daemon) findSecrets(secrets []string) {
	d.t.Helper()
	if len(secrets) == 0 {
		d.t.Error("no token was used")
	}
	texts := map[string][]byte{"stderr": []byte(d.stderr.String())}
	eachFile(d.t, d.dataDir(), func(path string, content []byte) { texts[path] = content })
	for name, text := range texts {
		for _, s := range secrets {
			if bytes.Contains(text, []byte(s)) {
				d.t.Errorf("%s contains a token", name)
			}
		}
	}
}

// TestPastedLogin: without a device flow, the user pastes the address at which the browser on another machine ends.
func TestPastedLogin(t *testing.T) {
	t.Parallel()
	login := mcptest.StartLoginServer(t, startUpstream(t, `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"tickets": {"url": %q}}}`, login.URL), noKeyring)
	d.awaitState("tickets", "needs_login")
	from, paste := io.Pipe()
	code, notes := d.logInWith(from, func(page string) {
		end := authtest.Browse(t, page)
		for _, address := range []string{"http://127.0.0.1/callback?code=x&state=y", strings.TrimPrefix(end, "http://")} {
			if _, err := fmt.Fprintln(paste, address); err != nil {
				t.Error(err)
			}
		}
		paste.Close()
	}, "tickets", "--headless")
	if code != 0 || !strings.Contains(notes, "Paste the whole address") {
		t.Errorf("exit code %d, %s", code, notes)
	}
	d.awaitState("tickets", "ready")
	if code, _, stderr := d.cli("call", "tool-read", "tickets:echo"); code != 0 {
		t.Errorf("a call right after the login: %d, %s", code, stderr)
	}
	d.checkNoTokens(login)
}

// TestCallAfterLogin: a call right after a finished login succeeds, on a new server and after a step-up.
func TestCallAfterLogin(t *testing.T) {
	t.Parallel()
	login := mcptest.StartLoginServer(t, startUpstream(t, `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"tickets": {"url": %q}}}`, login.URL), noKeyring)
	d.awaitState("tickets", "needs_login")
	for i := range 5 {
		if code, stderr := d.logIn("tickets"); code != 0 {
			t.Fatalf("login %d: %d, %s", i, code, stderr)
		}
		if r := d.legacy().call("call_tool_read", `{"name":"tickets:echo","args":{}}`); r.text() != "got {}" {
			t.Errorf("the call right after login %d: %s", i, r.text())
		}
		login.ChangeRules(func(r *mcptest.LoginRules) { r.Scope = fmt.Sprint("more", i) })
		if p := d.legacy().call("call_tool_read", `{"name":"tickets:echo","args":{}}`).refusal(t); p.Code != "LOGIN_NEEDED" || !strings.Contains(p.Message, "more permissions") {
			t.Errorf("without the scope: %+v", p)
		}
	}
}
