package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream/secret"
)

const thePassphrase = "a heron stood in the reeds"

// prompted is a text on the terminal and the input that answers it.
type prompted struct{ shown, typed string }

// atTerminal runs a command in its own terminal and answers its prompts there. Stdin and stdout are not that terminal.
func (d *daemon) atTerminal(answers []prompted, args ...string) (code int, stdout, screen string) {
	d.t.Helper()
	person, program := openTerminal(d.t.(*testing.T))
	cmd := exec.Command(binary, append(args, "--config", d.configPath(), "--data-dir", d.dataDir())...)
	cmd.Env = d.environ("PASSPHRASE="+thePassphrase, "MCPPROXY_PASSPHRASE="+thePassphrase)
	cmd.Stdin = strings.NewReader(strings.Repeat(thePassphrase+"\n", 3)) // no passphrase is read from stdin
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	_ = program.Close()
	hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	var seen strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer, from := make([]byte, 4096), 0
		for {
			n, err := person.Read(buffer)
			seen.Write(buffer[:n])
			for len(answers) > 0 {
				at := strings.Index(seen.String()[from:], answers[0].shown)
				if at < 0 {
					break
				}
				from += at + len(answers[0].shown)
				_, _ = io.WriteString(person, answers[0].typed+"\r")
				answers = answers[1:]
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Wait()
	<-read
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), seen.String()
}

// attack is a daemon with presence, its user, and an attacker that runs as the same operating system user.
type attack struct {
	*daemon
	key     ed25519.PrivateKey // the user's
	own     presence.Anchor    // the attacker's
	ownKey  ed25519.PrivateKey
	tries   int
	world   *counted
	clients []*http.Client // one over HTTP, one over the socket
}

// request sends one request with a presence header. way selects HTTP or the socket.
func (a *attack) request(way int, method, path, body, header string) (int, []byte) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", a.daemon.key())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if header != "" {
		r.Header.Set(presence.Header, header)
	}
	resp, err := a.clients[way].Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// asked returns the sign request in the response to a refused request.
func (a *attack) asked(answer []byte) (asked presence.SignRequest, ok bool) {
	var p struct {
		Code    string
		Details struct{ Statement, Claims, Anchor json.RawMessage }
	}
	if err := json.Unmarshal(answer, &p); err != nil || p.Code != "PRESENCE_REQUIRED" {
		a.t.Fatalf("the response does not require presence: %s", answer)
	}
	if p.Details.Statement == nil {
		return asked, false
	}
	asked, err := presence.ParseSignRequest(p.Details.Statement, p.Details.Claims, p.Details.Anchor)
	if err != nil {
		a.t.Fatal(err)
	}
	return asked, true
}

// permitted sends a request with the user's signature.
func (a *attack) permitted(method, path, body string) (header string, answer []byte) {
	a.t.Helper()
	_, refused := a.request(0, method, path, body, "")
	asked, _ := a.asked(refused)
	header = presence.SignStatement(asked.Statement, a.key).HeaderValue()
	status, answer := a.request(0, method, path, body, header)
	if status != http.StatusOK {
		a.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return header, answer
}

// TestUnsignedDecisionsAreInvalid: an attacker that runs as the user's operating system account tries to make
// decisions. The attacker has the socket, the API key, a terminal, the database, the keyring file, the log and the
// environment. Only decisions that the user has signed are valid, and the status names forged changes.
func TestUnsignedDecisionsAreInvalid(t *testing.T) {
	t.Parallel()
	world := &counted{}
	for _, name := range []string{"look", "kept", "extra", "more", "off"} {
		world.add(name, `{"readOnlyHint":true}`, `{"type":"object"}`)
	}
	world.add("wipe", `{"destructiveHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	d := startDaemon(t, fmt.Sprintf(`{"ask": {"destructive": "ask", "wait": "1s"}, "mcpServers": {"s": {"url": %q, "trust": "manual"}, "q": {"url": %q, "quarantined": true}, "auto": {"url": %q}}}`, u.URL, u.URL, u.URL))
	eventually(t, "the tools are listed", func() error {
		if n := len(d.lockedTools()); n != 6 {
			return fmt.Errorf("%d are locked", n)
		}
		return nil
	})
	for _, line := range []string{"tools approve s:look --yes", "tools approve s:kept --yes", "tools approve s:off --yes", "tools disable s:off"} {
		if code, out, stderr := d.cli(strings.Fields(line)...); code != 0 {
			t.Fatal(line, out, stderr)
		}
	}
	token := d.createToken("good")
	// The user sets a passphrase. This works only in a terminal.
	if code, _, stderr := d.cliWith(strings.Repeat(thePassphrase+"\n", 3), "presence", "set", "passphrase"); code != 3 || !strings.Contains(stderr, "terminal") {
		t.Errorf("without a terminal: %d %s", code, stderr)
	}
	twice := []prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}
	if code, out, screen := d.atTerminal([]prompted{{"New passphrase: ", "short"}, {"Repeat it: ", "short"}}, "presence", "set", "passphrase"); code != 2 || strings.Contains(screen, "short\n") {
		t.Errorf("a short passphrase: %d %s %s", code, out, screen)
	}
	code, out, screen := d.atTerminal(twice, "presence", "set", "passphrase")
	if code != 0 || !strings.Contains(out, "Changes that grant more access have required the passphrase") || !strings.Contains(screen, `approve "tool" "s" "look"`) || !strings.Contains(screen, `token "good"`) || strings.Contains(screen+out, thePassphrase) {
		t.Fatalf("%d\n%s\n%s", code, out, screen)
	}
	a := &attack{daemon: d, world: world, clients: []*http.Client{http.DefaultClient, {Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(d.dataDir(), "mcpproxy.sock"))
	}}}}}
	defer a.clients[1].CloseIdleConnections()
	a.learnKeys(t)
	if code, out, screen := d.atTerminal([]prompted{{"Passphrase", "a wrong passphrase"}, {"Passphrase", thePassphrase}}, "tools", "approve", "s:wipe", "--yes"); code != 0 || !strings.Contains(screen, `approve "tool" "s" "wipe"`) {
		t.Fatalf("%d %s %s", code, out, screen)
	}
	a.online(t)
	a.typed(t)
	a.edited(t, u.URL)
	a.state(t, token, "after everything that was tried")
	copied := a.copyData(t)
	a.planted(t, token)
	a.restore(t, copied)
	a.anchors(t, copied, token)
	a.older(t, copied, token)
	t.Logf("%d attempts", a.tries)
	if a.tries < 100 {
		t.Errorf("only %d attempts", a.tries)
	}
}

// learnKeys decrypts the user's key with the passphrase, which the test knows, and creates a key of the attacker.
func (a *attack) learnKeys(t *testing.T) {
	var v struct{ Anchor json.RawMessage }
	_, body := a.rest("GET", "/presence", "")
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	anchor, err := presence.ParseAnchor(v.Anchor)
	if err == nil {
		a.key, err = anchor.OpenSealedKey([]byte(thePassphrase))
	}
	if err == nil {
		a.own, a.ownKey, err = presence.NewPassphraseAnchor([]byte("one of my own, too"), presence.Digest{}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// state checks that exactly the signed decisions are valid.
func (a *attack) state(t *testing.T, token, when string) {
	t.Helper()
	want := statuses{"s:extra": "pending_approval", "s:more": "pending_approval", "s:off": "disabled_by_user"}
	eventually(t, when, func() error {
		got := a.lockedTools()
		for _, name := range []string{"s:extra", "s:more", "s:off", "s:look", "s:wipe", "s:kept", "auto:look"} {
			if got[name] != want[name] {
				return fmt.Errorf("%s is %q, not %q", name, got[name], want[name])
			}
		}
		return nil
	})
	if status, _ := a.discover("/mcp", token); status != http.StatusOK {
		t.Errorf("%s: the signed token gets %d", when, status)
	}
	a.notMore(t, when)
}

// notMore checks that no unsigned decision is valid.
func (a *attack) notMore(t *testing.T, when string) {
	t.Helper()
	locked := statuses{}
	eventually(t, when, func() error {
		if locked = a.lockedTools(); len(locked) == 0 && !a.closed() {
			return errors.New("the tools are not known yet")
		}
		return nil
	})
	for _, name := range []string{"s:extra", "s:more", "s:off"} {
		if locked[name] == "" && !a.closed() {
			t.Errorf("%s: %s can be called", when, name)
		}
	}
	var list struct {
		Servers []struct{ Name, State string }
		Tokens  []struct{ Name string }
		Leases  []any
	}
	for _, path := range []string{"/servers", "/tokens", "/leases"} {
		_, body := a.rest("GET", path, "")
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range list.Servers {
		if s.Name == "q" && (s.State == "connected" || s.State == "ready") {
			t.Errorf("%s: q is %s", when, s.State)
		}
	}
	if len(list.Leases) > 0 {
		t.Errorf("%s: leases run", when)
	}
	if ran := a.world.all(); len(ran) > 0 {
		t.Errorf("%s: these ran: %q", when, ran)
	}
}

// closed reports whether no server is configured because the confirmed configuration is not valid.
func (a *attack) closed() bool {
	_, shown := a.rest("GET", "/config", "")
	_, servers := a.rest("GET", "/servers", "")
	return strings.Contains(string(shown), `"unconfirmed_why"`) && !strings.Contains(string(servers), `"name"`)
}

// wipe calls the tool that needs approval and returns the ID of the pending approval.
func (a *attack) wipe(t *testing.T) (pending string) {
	t.Helper()
	r := a.stateless().call("call_tool_destructive", `{"name":"s:wipe","args":{}}`)
	var s struct {
		Error struct {
			Code    string
			Details struct {
				ID string `json:"approval_id"`
			}
		}
	}
	if err := json.Unmarshal(r.StructuredContent, &s); err != nil || !r.IsError || s.Error.Code != "APPROVAL_PENDING" {
		t.Fatalf("the call does not wait: %s %s", r.text(), r.StructuredContent)
	}
	return s.Error.Details.ID
}

func (a *attack) fingerprint(path, name string) string {
	var v map[string]json.RawMessage
	_, body := a.rest("GET", path, "")
	_ = json.Unmarshal(body, &v)
	return fmt.Sprintf(`{%q:%s}`, name, v[name])
}

// online tries every deciding operation over HTTP and the socket, with every kind of invalid signature.
func (a *attack) online(t *testing.T) {
	extra := a.fingerprint("/servers/s/tools/extra/diff", "fingerprint")
	more := a.fingerprint("/servers/s/tools/more/diff", "fingerprint")
	_, body := a.rest("GET", "/presence", "")
	var now struct{ Head string }
	_ = json.Unmarshal(body, &now)
	next := a.own
	_ = next.Before.UnmarshalText([]byte(now.Head))
	ownNext, _ := next.StoredJSON()
	replayed, _ := a.permitted("POST", "/tokens", `{"name":"of-the-person","lanes":["read"],"expires_in":"1h"}`)
	for _, one := range []struct{ method, path, body string }{
		{"POST", "/servers/s/tools/extra/approve", extra},
		{"POST", "/approvals/approve", fmt.Sprintf(`{"tools":[{"name":"s:extra",%s},{"name":"s:more",%s}]}`, strings.Trim(extra, "{}"), strings.Trim(more, "{}"))},
		{"POST", "/servers/s/tools/off/enable", ""},
		{"POST", "/servers/q/approve", a.fingerprint("/servers/q/review", "fingerprint")},
		{"POST", "/pending/" + a.wipe(t) + "/approve", ""},
		{"POST", "/leases", `{"server":"s","lane":"destructive"}`},
		{"POST", "/tokens", `{"name":"mine"}`},
		{"PUT", "/presence", `{"anchor":{"kind":"none","since":"2026-11-26T10:00:00Z","before":"` + now.Head + `"}}`},
		{"PUT", "/presence", `{"anchor":` + string(ownNext) + `}`},
	} {
		status, answer := a.request(0, one.method, one.path, one.body, "")
		good, ok := a.asked(answer)
		if status != http.StatusForbidden || !ok {
			t.Fatalf("%s %s: %d %s", one.method, one.path, status, answer)
		}
		another, _ := a.asked(func() []byte { _, b := a.request(0, "POST", "/leases", `{"server":"auto"}`, ""); return b }())
		// The user's signature of a different statement.
		others := presence.SignStatement(another.Statement, a.key)
		moved := others
		moved.For = good.For
		broader := others
		broader.Claims, broader.Count, broader.For = good.Statement.Claims, good.Count, good.For
		signed := presence.SignStatement(good.Statement, a.key)
		changed := func(change func(*presence.Statement)) string {
			s := signed // as if the user had signed this statement
			change(&s.Statement)
			return s.HeaderValue()
		}
		elsewhere := good.Statement
		elsewhere.For = "POST /api/v1/elsewhere"
		late := good.Statement
		late.At = late.At.Add(-presence.GoodFor - time.Minute)
		own := good.Statement
		own.Anchor = a.own.Fingerprint()
		for what, header := range map[string]string{
			"nothing": "", "garbage": "e30.e30", "not signed": presence.SignedStatement{Statement: good.Statement}.HeaderValue(),
			"another key": presence.SignStatement(good.Statement, a.ownKey).HeaderValue(), "another anchor": presence.SignStatement(own, a.ownKey).HeaderValue(),
			"replayed": replayed, "of another request": others.HeaderValue(), "moved": moved.HeaderValue(), "broader": broader.HeaderValue(),
			"another nonce": changed(func(s *presence.Statement) { s.Nonce = strings.Repeat("x", 26) }),
			"another time":  changed(func(s *presence.Statement) { s.At = s.At.Add(time.Second) }),
			"of elsewhere":  presence.SignStatement(elsewhere, a.key).HeaderValue(), "late": presence.SignStatement(late, a.key).HeaderValue(),
		} {
			for way := range a.clients {
				a.tries++
				status, answer := a.request(way, one.method, one.path, one.body, header)
				if status != http.StatusForbidden {
					t.Errorf("%s %s with %s: %d %s", one.method, one.path, what, status, answer)
					continue
				}
				a.asked(answer)
			}
		}
	}
	// Agents and anonymous callers cannot even request a decision.
	for _, who := range []string{"", "mcpp_t_" + strings.Repeat("0", 64)} {
		a.tries++
		if status, _ := a.restAs("PUT", "/presence", `{"anchor":{}}`, who); status == http.StatusOK {
			t.Errorf("as %q: %d", who, status)
		}
	}
	a.notMore(t, "online")
}

// typed tries the commands in a terminal, with anything but the passphrase.
func (a *attack) typed(t *testing.T) {
	wrong := []prompted{{"Passphrase", strings.ToUpper(thePassphrase)}, {"Passphrase", ""}} // each attempt is slow on purpose
	for _, one := range []struct {
		answers []prompted
		line    string
	}{
		{wrong, "tools approve s:extra --yes"},
		{wrong, "tools enable s:off"},
		{wrong, "presence set none"},
		{append([]prompted{{"New passphrase: ", "one of my own"}, {"Repeat it: ", "one of my own"}}, wrong...), "presence set passphrase"},
		{wrong, "presence join"},
		{wrong, "presence reset --cancel"},
		{[]prompted{{"Passphrase", ""}}, "lease grant s --lane destructive --yes"},
		{[]prompted{{"Passphrase", "\x03"}}, "token create mine"},
	} {
		a.tries++
		if code, out, screen := a.atTerminal(one.answers, strings.Fields(one.line)...); code == 0 {
			t.Errorf("%s: %s %s", one.line, out, screen)
		}
	}
}

// edited writes a file that grants more access with every key, including presence. The change must wait.
func (a *attack) edited(t *testing.T, url string) {
	before, err := os.ReadFile(a.configPath())
	if err != nil {
		t.Fatal(err)
	}
	a.writeConfig(fmt.Sprintf(`{"presence": "none", "quarantine_enabled": false, "ask": {"destructive": "off", "wait": "1s"}, "mcpServers": {"s": {"url": %q, "trust": "auto"}, "q": {"url": %q, "trust": "auto"}, "auto": {"url": %q}, "mine": {"command": "sh", "args": ["-c", "exit 1"]}}}`, url, url, url))
	a.tries += 5
	eventually(t, "the change of the file is pending", func() error {
		if r := a.newest("type=config_change"); r.Metadata.Action != "edit_waits" {
			return fmt.Errorf("%+v", r.Metadata)
		}
		return nil
	})
	a.notMore(t, "an edited file")
	a.wipe(t)
	a.writeConfig(string(before))
}

// copyData stops the daemon, copies its data directory, and starts it again.
func (a *attack) copyData(t *testing.T) string {
	a.stop()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(a.dataDir())); err != nil {
		t.Fatal(err)
	}
	return to
}

// restore replaces the data directory of a stopped daemon by a copy.
func (a *attack) restore(t *testing.T, from string) {
	t.Helper()
	if a.cmd != nil {
		a.stop()
	}
	if err := os.RemoveAll(a.dataDir()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(a.dataDir(), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// inDatabase changes the database of a stopped daemon.
func (a *attack) inDatabase(t *testing.T, do func(ctx context.Context, db *store.SQLite) error) {
	t.Helper()
	db := store.OpenSQLite(a.database(), nil)
	err := do(t.Context(), db)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// forged returns evidence that the attacker has signed.
func (a *attack) forged(claims ...presence.Claim) presence.Evidence {
	slices.Sort(claims)
	s := presence.NewDraftStatement(claims, time.Now().UTC().Truncate(time.Microsecond), strings.Repeat("f", 20)+fmt.Sprintf("%06d", len(claims)))
	s.For, s.Anchor = "POST /api/v1/x", a.own.Fingerprint()
	return presence.Evidence{SignedStatement: presence.SignStatement(s, a.ownKey), Claims: claims}
}

// shown returns the presence status.
func (a *attack) shown(t *testing.T) (v struct {
	Void          string
	Bad, Unsigned []string
}) {
	t.Helper()
	status, body := a.rest("GET", "/presence", "")
	if err := json.Unmarshal(body, &v); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return v
}

// planted writes rows into the database as an operation would, and starts the daemon.
func (a *attack) planted(t *testing.T, token string) {
	var extra tool.Fingerprint
	definition := ""
	for _, one := range a.world.tool {
		if strings.Contains(one.Definition, `"extra"`) {
			definition = one.Definition
		}
	}
	parsed, err := tool.ParseDefinition("s", []byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	extra = parsed.Fingerprint()
	mine := "mcpp_t_" + strings.Repeat("ab", 32)
	mark := approval.AuthorAndTime{By: "admin", At: time.Now()}
	a.inDatabase(t, func(ctx context.Context, db *store.SQLite) error {
		pin := &approval.Pin{Fingerprint: extra, Hints: parsed.Hints, AuthorAndTime: mark}
		candidate := approval.CandidateDefinition{Kind: tool.KindTool, Tool: "extra", Fingerprint: extra, Hints: parsed.Hints}
		now := time.Now()
		lease := ask.Lease{ID: "forgedforgedforg", Server: "s", Lane: auth.Destructive, Calls: 20, Left: 20, Given: now, Until: now.Add(time.Hour), By: "admin", Via: "cli"}
		waiting, err := db.ApprovalQuestions().WaitingQuestions(ctx, now)
		if err != nil || len(waiting) == 0 {
			return fmt.Errorf("no approval is pending: %w", err)
		}
		for _, q := range waiting {
			if _, err := db.ApprovalQuestions().AnswerQuestion(ctx, q.ID, ask.Answer{Approve: true, By: "admin", Via: "cli", At: now}); err != nil {
				return err
			}
		}
		a.tries += 6
		return errors.Join(
			db.SaveApprovals(ctx, approval.ChangeSet{Server: "s", Tools: []approval.DecisionRow{{Kind: tool.KindTool, Tool: "extra", DefinitionDecisions: approval.DefinitionDecisions{Pin: pin}}}}),
			db.SaveApprovals(ctx, approval.ChangeSet{Server: "q", Launch: &approval.ApprovedLaunch{Server: "q", Fingerprint: tool.Fingerprint{1}, AuthorAndTime: mark}}),
			db.ApprovalQuestions().AddLease(ctx, lease),
			db.ApprovalQuestions().PresenceProofs().SaveStatement(ctx, a.forged(approval.ApprovalClaim("s", candidate))),
			db.SaveToken(ctx, auth.Token{ID: "1", Name: "mine", Hash: sha256.Sum256([]byte(mine)), By: "admin", Created: now}),
		)
	})
	a.start()
	a.awaitTools("auto:look")
	a.notMore(t, "planted rows")
	a.wipe(t)
	if status, _ := a.discover("/mcp", mine); status != http.StatusUnauthorized {
		t.Errorf("a planted token: %d", status)
	}
	if status, _ := a.discover("/mcp", token); status != http.StatusOK {
		t.Errorf("the signed token next to it: %d", status)
	}
	v := a.shown(t)
	for _, want := range []string{`approve "tool" "s" "extra"`, `token "mine"`} {
		if !strings.Contains(strings.Join(v.Unsigned, "\n"), want) {
			t.Errorf("%s is not named: %q", want, v.Unsigned)
		}
	}
	if len(v.Bad) != 1 || v.Void != "" {
		t.Errorf("%+v", v)
	}
	if _, out, stderr := a.cli("presence", "test"); !strings.Contains(stderr, "has no signature") || !strings.Contains(out, "Changes that grant more access have required") {
		t.Errorf("presence test: %s %s", out, stderr)
	}
	a.named(t, "planted rows", "D711", "D712")
}

// named checks that the doctor reports the changes and that the verification of the log fails.
func (a *attack) named(t *testing.T, when string, codes ...string) {
	t.Helper()
	p := &patient{daemon: a.daemon}
	_, r := p.report("--only", strings.Join(codes, ","))
	for _, code := range codes {
		if !slices.ContainsFunc(r.Checks, func(c doctor.CheckResult) bool { return c.Code == code && c.State == doctor.Bad }) {
			t.Errorf("%s: the doctor reports %+v", when, r.Checks)
		}
	}
	if code, out, stderr := a.cli("activity", "verify"); code != 1 {
		t.Errorf("%s: the verification of the log succeeds: %s%s", when, out, stderr)
	}
}

// anchors tries to replace the user's anchor in one or two of the three places where it is stored.
func (a *attack) anchors(t *testing.T, copied, token string) {
	own := a.own
	evidence := a.forged(presence.NewClaim("presence anchor", "passphrase", own.Fingerprint().String()))
	own.Nonce = evidence.Nonce
	vault := func(d presence.Digest) {
		if err := secret.OpenVault(a.dataDir(), "presence", slog.New(slog.DiscardHandler)).Save(t.Context(), "presence anchor", []byte(d.String())); err != nil {
			t.Fatal(err)
		}
	}
	database := func(all ...presence.Anchor) {
		a.inDatabase(t, func(ctx context.Context, db *store.SQLite) error {
			stored, err := db.ApprovalQuestions().PresenceProofs().LoadPresence(ctx)
			return errors.Join(err, db.ApprovalQuestions().PresenceProofs().SaveStatement(ctx, evidence), db.ApprovalQuestions().PresenceProofs().SaveAnchors(ctx, stored.HeadFingerprint(), all))
		})
	}
	logged := func() { // also in the log, by a text of the same length
		all := a.person(t)
		a.inDatabaseText(t, all.String(), own.Fingerprint().String())
	}
	for what, change := range map[string]func(){
		"no keyring":           func() { _ = os.Remove(filepath.Join(a.dataDir(), "presence.age")) },
		"own in the keyring":   func() { vault(own.Fingerprint()) },
		"own in the database":  func() { database(own) },
		"none in the database": func() { database() },
		"database and keyring": func() { database(own); vault(own.Fingerprint()) },
		"database and log":     func() { database(own); logged() },
		"keyring and log":      func() { vault(own.Fingerprint()); logged() },
	} {
		a.tries++
		a.restore(t, copied)
		change()
		a.start()
		v := a.shown(t)
		if v.Void == "" {
			t.Errorf("%s: the attacker's anchor is valid", what)
		}
		a.nothing(t, what)
		if status, _ := a.discover("/mcp", token); status != http.StatusUnauthorized {
			t.Errorf("%s: the token gets %d", what, status)
		}
		if _, out, _ := a.cli("presence", "test"); !strings.Contains(out, "No approval is valid.") {
			t.Errorf("%s: %s", what, out)
		}
		if strings.HasPrefix(what, "none") {
			a.named(t, what, "D710")
		} else {
			a.named(t, what, "D709")
		}
		next := a.own
		var now struct{ Head string }
		_, body := a.rest("GET", "/presence", "")
		if err := errors.Join(json.Unmarshal(body, &now), next.Before.UnmarshalText([]byte(now.Head))); err != nil {
			t.Fatal(err)
		}
		join := []prompted{{"Passphrase", "one of my own, too"}, {"Passphrase", ""}}
		if code, _, _ := a.atTerminal(join, "presence", "join"); code == 0 && what != "" {
			t.Errorf("%s: a client without the passphrase is accepted", what)
		}
		head, _ := next.StoredJSON()
		if status, body := a.rest("PUT", "/presence", `{"anchor":`+string(head)+`}`); status == http.StatusOK {
			t.Errorf("%s: another anchor is set: %s", what, body)
		}
		a.tries += 2
	}
	// After a reset by the attacker, no decision is valid and nothing can be set until the user cancels it.
	a.restore(t, copied)
	a.start()
	a.state(t, token, "as it was")
	if code, out, stderr := a.cli("presence", "reset", "--yes"); code != 0 || !strings.Contains(out, "Presence was reset") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	a.nothing(t, "reset")
	if code, _, _ := a.atTerminal([]prompted{{"New passphrase: ", "one of my own"}, {"Repeat it: ", "one of my own"}}, "presence", "set", "passphrase"); code == 0 {
		t.Error("another anchor is set after a reset")
	}
	a.tries += 2
	if code, out, screen := a.atTerminal([]prompted{{"Passphrase", thePassphrase}}, "presence", "reset", "--cancel"); code != 0 {
		t.Fatalf("%d %s %s", code, out, screen)
	}
	a.state(t, token, "a reset that was called off")
}

// nothing checks that no tool can be called.
func (a *attack) nothing(t *testing.T, when string) {
	t.Helper()
	for _, name := range []string{"extra", "more", "off", "look", "kept"} {
		if r := a.stateless().call("call_tool_read", `{"name":"s:`+name+`","args":{}}`); !r.IsError {
			t.Errorf("%s: %s can be called", when, name)
		}
	}
}

// person returns the fingerprint of the user's anchor.
func (a *attack) person(t *testing.T) (d presence.Digest) {
	a.inDatabase(t, func(ctx context.Context, db *store.SQLite) error {
		all, err := db.ApprovalQuestions().PresenceProofs().LoadPresence(ctx)
		for _, e := range all.Statements {
			if e.Anchor != a.own.Fingerprint() {
				d = e.Anchor
			}
		}
		return err
	})
	return d
}

// inDatabaseText replaces a text by another one of the same length, everywhere in the files of the log and the database
// except in statements.
func (a *attack) inDatabaseText(t *testing.T, was, is string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(a.dataDir(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte(was)) {
			return err
		}
		found = true
		return os.WriteFile(path, bytes.ReplaceAll(raw, []byte(was), []byte(is)), 0o600)
	})
	if err != nil || !found {
		t.Fatalf("the fingerprint of %s is not found: %v", hex.EncodeToString([]byte(was))[:8], err)
	}
}

// older restores an older database, in which revoked decisions are still valid.
func (a *attack) older(t *testing.T, copied, token string) {
	if code, _, stderr := a.cli("tools", "block", "s:kept"); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := a.cli("token", "revoke", "good"); code != 0 {
		t.Fatal(stderr)
	}
	a.stop()
	a.tries++
	old, err := os.ReadFile(filepath.Join(copied, "mcpproxy.db"))
	if err == nil {
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(a.database() + suffix)
		}
		err = os.WriteFile(a.database(), old, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.start()
	a.notMore(t, "an older database")
	if locked := a.lockedTools(); locked["s:kept"] == "" {
		t.Errorf("an older database: revoked decisions are valid: %v", locked)
	}
	if status, _ := a.discover("/mcp", token); status != http.StatusUnauthorized {
		t.Errorf("an older database: the token gets %d", status)
	}
}
