package e2e

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/pgtest"
)

// desktop is a desktop's notification service on its own session bus.
type desktop struct {
	address string
	mu      sync.Mutex // guards texts
	texts   []string
}

// startDesktop starts a bus with a notification service, or skips the test.
func startDesktop(t *testing.T) *desktop {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("dbus-daemon is not installed: apt-get install dbus")
	}
	bus := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, bus)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	d := &desktop{address: strings.TrimSpace(address)}
	conn, err := dbus.Connect(d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Export(d, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.Notifications", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return d
}

// Notify implements org.freedesktop.Notifications.
func (d *desktop) Notify(app string, replaces uint32, icon, summary, body string, actions []string, hints map[string]dbus.Variant, timeout int32) (uint32, *dbus.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts = append(d.texts, fmt.Sprint(app, " ", icon, " ", summary, " ", body, " ", actions, " ", hints))
	return uint32(len(d.texts)), nil
}

// all returns everything that was shown.
func (d *desktop) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.texts)
}

// hooks is a receiver of webhooks that checks their signatures.
type hooks struct {
	*httptest.Server
	mu     sync.Mutex          // guards the fields below
	bodies map[string][]string // by path
	wrong  error
}

func startHooks(t *testing.T) *hooks {
	h := &hooks{bodies: map[string][]string{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

const hookSecret = "s3cret-of-the-signature"

func (h *hooks) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	sum := hmac.New(sha256.New, []byte(hookSecret))
	fmt.Fprintf(sum, "%s.%s", r.Header.Get("MCPProxy-Timestamp"), body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := r.Header.Get("MCPProxy-Signature"); err != nil || got != "sha256="+hex.EncodeToString(sum.Sum(nil)) {
		h.wrong = fmt.Errorf("the signature %q is wrong: %w", got, err)
	}
	h.bodies[r.URL.Path] = append(h.bodies[r.URL.Path], string(body))
}

// at returns the bodies of the requests to a path.
func (h *hooks) at(path string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bodies[path])
}

// TestNotifications checks that the desktop and webhooks are notified once of each held call and each waiting
// definition, also across restarts, and never get an argument, a reason, or a text from a server.
func TestNotifications(t *testing.T) {
	t.Parallel()
	desk, hooks := startDesktop(t), startHooks(t)
	const (
		wipe    = `{"name":"wipe","description":"Wipe a disk","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`
		look    = `{"name":"look","description":"Look at a disk","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		changed = `{"name":"look","description":"Look at a canary disk","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	)
	upstream := startUpstream(t, wipe, look)
	d := startDaemon(t, fmt.Sprintf(`{"ask":{"destructive":"ask","wait":"1s"},"mcpServers":{"s":{"url":%q}},"notify":{"webhooks":[
		{"url":"%[2]s/json","secret":"${env:HOOK_SECRET}"},{"url":"%[2]s/slack","format":"slack","secret":"${env:HOOK_SECRET}"},
		{"url":"%[2]s/teams","format":"teams","secret":"${env:HOOK_SECRET}","events":["definition.held"]}]}}`, upstream.URL, hooks.URL),
		"DBUS_SESSION_BUS_ADDRESS="+desk.address, "HOOK_SECRET="+hookSecret)
	call := func(n int) {
		t.Helper()
		status, body := d.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_destructive","name":"s:wipe","args":{"disk":"canary-argument","n":%d},"intent":{"reason":"canary reason"}}`, n))
		if status != http.StatusForbidden || !strings.Contains(string(body), "APPROVAL_PENDING") {
			t.Fatalf("%d %s", status, body)
		}
	}
	// awaitNotification waits for the number-th notification, which is about these items.
	awaitNotification := func(number int, items ...string) {
		t.Helper()
		eventually(t, "a notification", func() error {
			if shown, sent := desk.all(), hooks.at("/json"); len(shown) < number || len(sent) < number || len(hooks.at("/slack")) < number {
				return errors.New(strings.Join(append(shown, sent...), "\n"))
			}
			return nil
		})
		var m struct {
			Text  string
			Items []struct {
				Event, Server, Tool string
				Count               int
			}
		}
		sent := hooks.at("/json")
		if err := json.Unmarshal([]byte(sent[len(sent)-1]), &m); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range m.Items {
			got = append(got, fmt.Sprintf("%s %s:%s %d", i.Event, i.Server, i.Tool, i.Count))
		}
		if shown := desk.all(); len(sent) != number || len(shown) != number || !slices.Equal(got, items) || !strings.Contains(shown[number-1], m.Text) || !strings.Contains(shown[number-1], "/ui/approvals") {
			t.Errorf("the notifications are:\n%s\n%s", strings.Join(sent, "\n"), strings.Join(shown, "\n"))
		}
	}
	d.awaitTools("s:wipe", "s:look")
	began := time.Now()
	call(1)
	call(1) // joins the same question
	awaitNotification(1, "call.held s:wipe 1")
	t.Logf("desktop and webhooks know of both calls %v after the first; each waited for 1 s", time.Since(began)) // TestNotificationsAreRateLimited checks the time
	d.stop()
	upstream.define(wipe, changed)
	d.start()
	awaitNotification(2, "definition.held s:look 1")
	d.stop()
	d.start()
	d.awaitTools("s:wipe")
	call(2)
	awaitNotification(3, "call.held s:wipe 1")
	if n := len(hooks.at("/teams")); n != 1 {
		t.Errorf("the webhook for definitions got %d notifications", n)
	}
	if hooks.wrong != nil {
		t.Error(hooks.wrong)
	}
	for _, text := range slices.Concat(desk.all(), hooks.at("/json"), hooks.at("/slack"), hooks.at("/teams")) {
		if strings.Contains(strings.ToLower(text), "canary") || strings.Contains(text, hookSecret) {
			t.Errorf("a notification contains more than names: %s", text)
		}
	}
	hooks.Close()
	if code, out, stderr := d.cli("notify", "test"); code == 0 || !strings.Contains(out, "desktop") || !strings.Contains(out, "connection refused") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	if _, body := d.rest("GET", "/status", ""); !strings.Contains(string(body), "The last notification to webhook 1 (127.0.0.1) was lost") {
		t.Errorf("%s", body)
	}
}

// TestLoginIsAnnounced: a server that needs a login is announced once, and again after a logout.
func TestLoginIsAnnounced(t *testing.T) {
	t.Parallel()
	hooks := startHooks(t)
	upstream := startUpstream(t, `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	login := mcptest.StartLoginServer(t, upstream)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"tickets":{"url":%q}},"notify":{"webhooks":[{"url":"%s/","secret":%q}]}}`, login.URL, hooks.URL, hookSecret), noKeyring)
	announced := func(times int) {
		t.Helper()
		eventually(t, "a notification", func() error {
			if got := hooks.at("/"); len(got) < times {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
		for _, body := range hooks.at("/") {
			if !strings.Contains(body, `"text":"A server needs a login: tickets.","link":"http://`+d.address+`/ui/servers"`) {
				t.Errorf("got %s", body)
			}
		}
	}
	announced(1)
	if code, out, stderr := d.cli("call", "tool-read", "tickets:echo"); code != 6 {
		t.Errorf("a call without a login: %d %s%s", code, out, stderr)
	}
	if code, stderr := d.logIn("tickets"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	d.awaitTools("tickets:echo")
	if code, out, stderr := d.cli("upstream", "logout", "tickets"); code != 0 {
		t.Fatalf("%d %s%s", code, out, stderr)
	}
	announced(2)
	if got := hooks.at("/"); len(got) != 2 || hooks.wrong != nil {
		t.Errorf("got %q, %v", got, hooks.wrong)
	}
}

// TestNotificationsOfInstances: of two instances on one database, the one that holds a call announces it, and one of
// the two announces a definition that both list.
func TestNotificationsOfInstances(t *testing.T) {
	t.Parallel()
	const (
		wipe = `{"name":"wipe","description":"Wipe a disk","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`
		look = `{"name":"look","description":"%s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	)
	hooks, upstream := startHooks(t), startUpstream(t, wipe, fmt.Sprintf(look, "Look at a disk"))
	database := pgtest.StartServer(t).CreateDatabase(t)
	var both []*daemon
	for range 2 {
		both = append(both, startDaemon(t, fmt.Sprintf(`{"database":%q,"ask":{"destructive":"ask","wait":"1s"},"mcpServers":{"s":{"url":%q}},"notify":{"webhooks":[{"url":"%s/","secret":%q}]}}`, database, upstream.URL, hooks.URL, hookSecret)))
	}
	for _, d := range both {
		awaitReady(d)
		d.awaitTools("s:wipe", "s:look")
	}
	holdAndAwait := func(n int) {
		t.Helper()
		d := both[n%2]
		if status, body := d.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_destructive","name":"s:wipe","args":{"n":%d}}`, n)); status != http.StatusForbidden {
			t.Fatalf("%d %s", status, body)
		}
		eventually(t, "the call is announced", func() error {
			if got := hooks.at("/"); strings.Count(strings.Join(got, ""), `"call.held"`) < n+1 || !strings.Contains(got[len(got)-1], d.address) {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
	}
	holdAndAwait(0)
	holdAndAwait(1)
	upstream.define(wipe, fmt.Sprintf(look, "Look at a disk, and send it"))
	var restarts sync.WaitGroup
	for _, d := range both {
		restarts.Go(func() {
			if status, body := d.rest("POST", "/servers/s/restart", ""); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	restarts.Wait()
	for _, d := range both {
		eventually(t, "the definition waits", func() error {
			if _, body := d.rest("GET", "/tools?status=pending_approval", ""); !strings.Contains(string(body), `"s:look"`) {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
	}
	// Each instance sends what it has before or with the next call.
	holdAndAwait(2)
	holdAndAwait(3)
	all := strings.Join(hooks.at("/"), "\n")
	if calls, definitions := strings.Count(all, `"call.held"`), strings.Count(all, `"definition.held"`); calls != 4 || definitions != 1 || hooks.wrong != nil {
		t.Errorf("%d calls and %d definitions are announced: %s, %v", calls, definitions, all, hooks.wrong)
	}
}
