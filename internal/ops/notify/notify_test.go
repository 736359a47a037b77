package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

func TestMain(m *testing.M) {
	os.Setenv("NO_PROXY", "*")
	goleak.VerifyTestMain(m)
}

// parseConfig returns a configuration with this value of notify. Its desktop is off.
func parseConfig(t *testing.T, webhooks string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(path, []byte(`{"notify": {"desktop": false, "webhooks": `+webhooks+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLiveConfig(path, config.Options{DataDir: t.TempDir(), Logger: catalogtest.Logger})
	if err != nil {
		t.Fatal(err)
	}
	return live.Current()
}

// newTestNotifier returns a Notifier for a configuration.
func newTestNotifier(c *config.Config) *Notifier {
	return New(Deps{Config: func() *config.Config { return c }, Observe: func(ops.LogObserver) {}, NeedsLogin: func(string) bool { return true },
		Secret: func(string) (string, error) { return "", errors.New("no secret") },
		UI:     func() string { return "http://127.0.0.1:8080/ui/" }, Version: "1", Logger: catalogtest.Logger})
}

// entry returns a log entry.
func entry(id string, kind activity.Type, status activity.Status, server, tool, code string) *activity.EntryEvent {
	return &activity.EntryEvent{ID: id, Facts: activity.RecordFacts{Type: kind, Status: status, Server: server, Tool: tool, ErrorCode: code, Reason: "because"}}
}

func held(id, tool string) *activity.EntryEvent {
	return entry(id, activity.ToolCall, activity.Held, "s", tool, "")
}

func definition(id, tool string) *activity.EntryEvent {
	return entry(id, activity.Approval, activity.Blocked, "s", tool, "")
}

// announced returns the names of the records that wait, and removes them.
func (n *Notifier) announced() (names []string) {
	for _, r := range n.waiting {
		names = append(names, r.Event+" "+r.name())
	}
	n.waiting = nil
	return names
}

func TestRecordsThatAreAnnounced(t *testing.T) {
	n := newTestNotifier(config.DefaultConfig())
	for _, e := range []*activity.EntryEvent{
		held("1", "wipe"), definition("2", "look"), entry("3", activity.ServerChange, activity.Failed, "s", "", "LOGIN_NEEDED"),
		entry("4", activity.ToolCall, activity.Pending, "s", "wipe", ""), entry("5", activity.ToolCall, activity.Success, "s", "wipe", ""),
		entry("6", activity.PolicyDecision, activity.Blocked, "s", "wipe", "APPROVAL_PENDING"), entry("7", activity.Approval, activity.Success, "s", "look", ""),
		entry("8", activity.Approval, activity.Blocked, "s", "look", "PRESENCE_REQUIRED"), entry("9", activity.ServerChange, activity.Failed, "s", "", "TIMEOUT"),
		// The same login, by a call that fails.
		entry("10", activity.ToolCall, activity.Failed, "s", "look", "LOGIN_NEEDED"),
	} {
		n.observe(e, false)
		n.observe(e, true)
	}
	if got := n.announced(); !slices.Equal(got, []string{"call.held s:wipe", "definition.held s:look", "login.needed s"}) {
		t.Errorf("announced %q", got)
	}
	// After a login, the next one is announced.
	n.NeedsLogin = func(string) bool { return false }
	n.observe(entry("11", activity.ServerChange, activity.Success, "s", "", ""), false)
	n.observe(entry("12", activity.ServerChange, activity.Failed, "s", "", "LOGIN_NEEDED"), false)
	n.NeedsLogin = func(string) bool { return true }
	n.observe(entry("13", activity.ServerChange, activity.Failed, "s", "", "LOGIN_NEEDED"), false)
	if got := n.announced(); !slices.Equal(got, []string{"login.needed s"}) {
		t.Errorf("announced %q", got)
	}
}

// Each of two instances lists the same changed definition. Whatever the order in which they get each other's records,
// one of them announces it.
func TestOneInstanceAnnouncesADefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for order := range 6 {
			a, b := newTestNotifier(config.DefaultConfig()), newTestNotifier(config.DefaultConfig())
			ofA, ofB := definition("01A", "look"), definition("01B", "look")
			steps := []func(){func() { a.observe(ofB, true) }, func() { b.observe(ofA, true) }}
			own := func() { a.observe(ofA, false); b.observe(ofB, false) }
			steps = slices.Insert(steps, order%3, own)
			if order >= 3 {
				slices.Reverse(steps)
			}
			for _, step := range steps {
				step()
			}
			if got := append(a.announced(), b.announced()...); len(got) != 1 {
				t.Errorf("order %d: announced %q", order, got)
			}
			// A call is held by one instance only. Another change is announced again.
			a.observe(held("01C", "look"), false)
			b.observe(held("01C", "look"), true)
			time.Sleep(sameChange)
			b.observe(definition("01D", "look"), false)
			if got := fmt.Sprint(a.announced(), b.announced()); got != "[call.held s:look] [definition.held s:look]" {
				t.Errorf("order %d: announced %s", order, got)
			}
		}
	})
}

// A flood of held calls leads to one notification per interval, and the first one does not wait for it.
func TestNotificationsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNotifier(parseConfig(t, `[{"url": "${keyring:hook}"}]`))
		began := time.Now()
		var tries []time.Duration
		n.Secret = func(string) (string, error) {
			tries = append(tries, time.Since(began))
			return "", errors.New("no secret")
		}
		stop := run(n)
		for i := range 10_000 {
			n.observe(held(fmt.Sprint(i), fmt.Sprint("tool", i)), false)
			time.Sleep(6 * time.Millisecond)
		}
		synctest.Wait()
		if len(tries) != 6 || tries[0] != window { // in a minute
			t.Errorf("notifications after %v", tries)
		}
		if len(n.waiting) > maxItems {
			t.Errorf("%d records are stored", len(n.waiting))
		}
		if got := n.Warnings(); len(got) != 1 || !strings.Contains(got[0], "webhook 1 was lost: no secret") {
			t.Errorf("warnings %q", got)
		}
		stop()
	})
}

// run runs n until the returned function is called.
func run(n *Notifier) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestMessage(t *testing.T) {
	many := []record{}
	for i := range 5 {
		many = append(many, record{Item{Event: config.NotifyCallHeld, Server: "s", Tool: fmt.Sprint("t", i%4)}, ""})
	}
	many = append(many, record{Item{Event: config.NotifyLoginNeeded, Server: "mail"}, ""})
	m := newMessage(many, 7, "http://h/ui/")
	if want := "5 calls wait for your approval: s:t0, s:t1, s:t2 and 1 more.\nA server needs a login: mail.\n7 more wait."; m.Text != want || m.Link != "http://h/ui/approvals" {
		t.Errorf("got %q, %s", m.Text, m.Link)
	}
	part, ok := m.withEvents([]string{config.NotifyLoginNeeded})
	if !ok || part.Text != "A server needs a login: mail." || part.Link != "http://h/ui/servers" || len(m.Items) != 5 {
		t.Errorf("got %v %+v of %+v", ok, part, m)
	}
	if _, ok := m.withEvents([]string{config.NotifyDefinitionHeld}); ok {
		t.Error("a part without items is sent")
	}
	hostile := newMessage([]record{{Item{Event: config.NotifyCallHeld, Server: "s", Tool: "<!channel> *x*\n\x1b[1m\u202e@all `y` http://evil.example/" + strings.Repeat("z", 1000)}, ""}}, 0, "http://h/ui/")
	name := strings.TrimSuffix(strings.TrimPrefix(hostile.Text, "A call waits for your approval: s:"), ".")
	if len([]rune(name)) > maxName+1 || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.?…", r)
	}) {
		t.Errorf("got %q", hostile.Text)
	}
}
