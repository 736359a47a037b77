// Package notify tells a user that something waits: a held call, a definition under review, or a login. It shows
// notifications on the desktop and sends them to the webhooks of the configuration.
//
// Files:
//   - notify.go: collects what waits and sends it
//   - webhook.go: requests to webhooks, their forms and signatures
//   - desktop_dbus.go, desktop_beeep.go: the desktop of each system
//
// Guarantees:
//   - It reads the activity log, and adds no work to a call.
//   - A notification contains names of servers and tools, cut and without special characters. It never contains
//     arguments or texts of servers.
//   - Each record is announced once. With several instances, the one that wrote the record announces it.
//   - At most one notification is sent per interval. It contains everything since the last one.
//
// It stores nothing: after a restart it does not announce what waited before. A login is announced again, because
// MCPProxy tries the server again.
package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

const (
	// window is how long the first item waits for others that belong into the same notification.
	window = 500 * time.Millisecond
	// interval is the minimum time between two notifications.
	interval = 10 * time.Second
	// sameChange is how long a definition is not announced again after another instance has announced it.
	sameChange = time.Minute
	// maxItems limits the items of one notification. Further items are only counted.
	maxItems = 100
)

// Deps are the dependencies of a Notifier.
type Deps struct {
	Config     func() *config.Config
	Observe    func(ops.LogObserver)
	NeedsLogin func(server string) bool
	// Secret returns the value of a ${keyring:NAME} reference.
	Secret func(name string) (string, error)
	// UI returns the address of the web UI, with a slash at the end.
	UI      func() string
	Version string
	Logger  *slog.Logger
}

// Notifier sends notifications while Run is running.
type Notifier struct {
	Deps
	desktop desktop
	retries []time.Duration
	wake    chan struct{}
	sending sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	waiting  []record   // since the last notification
	dropped  int        // records beyond maxItems
	logins   map[string]bool
	remote   map[Item]remoteRecord // definitions that other instances hold
	failures map[string]string     // why the last notification to a webhook failed, by URL
}

// record is a record of the log that is announced.
type record struct {
	Item
	id string
}

// remoteRecord is the last record of another instance about an item.
type remoteRecord struct {
	id   string
	seen time.Time
}

// New returns a Notifier.
func New(d Deps) *Notifier {
	return &Notifier{Deps: d, retries: []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}, wake: make(chan struct{}, 1),
		logins: map[string]bool{}, remote: map[Item]remoteRecord{}, failures: map[string]string{}}
}

// PrepareConfig implements config.ReloadableComponent.
func (n *Notifier) PrepareConfig(*config.Config) (func(), error) { return n.followLogIfNeeded, nil }

// followLogIfNeeded follows the log if there is a receiver.
func (n *Notifier) followLogIfNeeded() {
	if cfg := n.Config(); len(cfg.Webhooks) == 0 && !(cfg.NotifyDesktop && n.desktop.isAvailable()) {
		n.Observe(nil)
		return
	}
	n.Observe(n.observe)
}

// itemOf returns what a log entry announces.
func itemOf(f *activity.RecordFacts) (i Item, ok bool) {
	i = Item{Server: f.Server, Tool: f.Tool}
	switch {
	case f.Type == activity.ToolCall && f.Status == activity.Held:
		i.Event = config.NotifyCallHeld
	case f.Type == activity.Approval && f.Status == activity.Blocked && f.ErrorCode == "": // else a refused decision
		i.Event = config.NotifyDefinitionHeld
	case f.ErrorCode == string(problem.LoginNeeded) && f.Server != "":
		i.Event, i.Tool = config.NotifyLoginNeeded, ""
	}
	return i, i.Event != ""
}

// observe is an ops.LogObserver.
func (n *Notifier) observe(e *activity.EntryEvent, remote bool) {
	f := &e.Facts
	i, ok := itemOf(f)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !ok:
		if !remote && n.logins[f.Server] && !n.NeedsLogin(f.Server) {
			delete(n.logins, f.Server) // the next failed login is announced again
		}
	case remote:
		if i.Event == config.NotifyDefinitionHeld {
			n.addRemote(record{i, e.ID})
		}
	case i.Event == config.NotifyLoginNeeded && (n.logins[i.Server] || !n.NeedsLogin(i.Server)):
	case n.isAnnouncedElsewhere(record{i, e.ID}):
	default:
		if i.Event == config.NotifyLoginNeeded {
			n.logins[i.Server] = true
		}
		n.add(record{i, e.ID})
	}
}

// isAnnouncedElsewhere reports whether another instance holds the same definition and recorded it first: each instance
// lists the tools of a server itself.
func (n *Notifier) isAnnouncedElsewhere(r record) bool {
	other, ok := n.remote[r.Item]
	return ok && other.id < r.id && time.Since(other.seen) < sameChange
}

// addRemote remembers the record of another instance, and withdraws a record of this instance about the same.
func (n *Notifier) addRemote(r record) {
	maps.DeleteFunc(n.remote, func(_ Item, o remoteRecord) bool { return time.Since(o.seen) >= sameChange })
	if len(n.remote) < maxItems {
		n.remote[r.Item] = remoteRecord{r.id, time.Now()}
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(own record) bool { return own.Item == r.Item && n.isAnnouncedElsewhere(own) })
}

func (n *Notifier) add(r record) {
	if len(n.waiting) >= maxItems {
		n.dropped++
		return
	}
	n.waiting = append(n.waiting, r)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run sends notifications until ctx is done.
func (n *Notifier) Run(ctx context.Context) {
	defer n.sending.Wait()
	defer n.Observe(nil)
	n.followLogIfNeeded()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		if !sleep(ctx, window) {
			return
		}
		n.sendWaiting(ctx)
		if !sleep(ctx, interval) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sendWaiting starts to send what waits to all receivers.
func (n *Notifier) sendWaiting(ctx context.Context) {
	n.mu.Lock()
	records, dropped := n.waiting, n.dropped
	n.waiting, n.dropped = nil, 0
	n.mu.Unlock()
	if len(records) == 0 {
		return
	}
	m := newMessage(records, dropped, n.UI())
	cfg := n.Config()
	if cfg.NotifyDesktop && n.desktop.isAvailable() {
		n.sending.Go(func() {
			if err := n.desktop.show(ctx, m.Text+"\n"+m.Link); err != nil && !errors.Is(err, errNoDesktop) {
				n.Logger.Debug("the desktop shows no notification", "error", err)
			}
		})
	}
	for i, w := range cfg.Webhooks {
		if part, ok := m.withEvents(w.Events); ok {
			n.sending.Go(func() { n.setFailure(w, i, n.deliver(ctx, w, part, n.retries)) })
		}
	}
}

// setFailure stores why a webhook did not accept a notification; nil means that it did.
func (n *Notifier) setFailure(w config.Webhook, number int, err error) {
	if errors.Is(err, context.Canceled) {
		return // MCPProxy stops
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.failures, w.URL)
		return
	}
	if n.failures[w.URL] == "" {
		n.Logger.Warn("a notification was lost", "receiver", receiverName(w, number), "error", err)
	}
	n.failures[w.URL] = err.Error()
}

// Warnings returns a warning for each webhook that did not accept the last notification.
func (n *Notifier) Warnings() (out []string) {
	hooks := n.Config().Webhooks
	n.mu.Lock()
	defer n.mu.Unlock()
	for url := range n.failures {
		if !slices.ContainsFunc(hooks, func(w config.Webhook) bool { return w.URL == url }) {
			delete(n.failures, url)
		}
	}
	for i, w := range hooks {
		if why := n.failures[w.URL]; why != "" {
			out = append(out, fmt.Sprintf("The last notification to %s was lost: %s. After a fix, run `mcpproxy notify test`.", receiverName(w, i), why))
		}
	}
	return out
}

// TestResult is the result of a test notification.
type TestResult struct {
	Receivers []ReceiverResult `json:"receivers"`
}

// ReceiverResult is the result of a test notification to one receiver.
type ReceiverResult struct {
	Receiver string `json:"receiver" doc:"desktop, or the number and the host of the webhook."`
	Error    string `json:"error,omitempty" doc:"Why the receiver did not get the notification. Absent if it did."`
}

// SendTest sends a test notification to every receiver, once.
func (n *Notifier) SendTest(ctx context.Context, _ ops.Caller, _ ops.Nothing) (TestResult, error) {
	var out TestResult
	m := Message{ID: rand.Text(), Time: time.Now().UTC(), Text: "This is a test of MCPProxy's notifications.", Link: n.UI(), Items: []Item{}}
	cfg := n.Config()
	out.Receivers = make([]ReceiverResult, len(cfg.Webhooks))
	var sending sync.WaitGroup
	for i, w := range cfg.Webhooks {
		sending.Go(func() {
			err := n.deliver(ctx, w, m, nil)
			n.setFailure(w, i, err)
			out.Receivers[i] = newReceiverResult(receiverName(w, i), err)
		})
	}
	sending.Wait()
	err := errNoDesktop
	if cfg.NotifyDesktop && n.desktop.isAvailable() {
		err = n.desktop.show(ctx, m.Text)
	}
	// On a machine without a desktop, webhooks are enough.
	if cfg.NotifyDesktop && (len(cfg.Webhooks) == 0 || !errors.Is(err, errNoDesktop)) {
		out.Receivers = slices.Insert(out.Receivers, 0, newReceiverResult("desktop", err))
	}
	return out, nil
}

func newReceiverResult(receiver string, err error) ReceiverResult {
	r := ReceiverResult{Receiver: receiver}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// errNoDesktop is the error of a desktop that does not exist.
var errNoDesktop = errors.New("there is no desktop session")

// Item is something that waits for the user.
type Item struct {
	Event  string `json:"event"`
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"`
	Count  int    `json:"count"`
}

// name returns the name of the item's tool or server.
func (i Item) name() string {
	if i.Tool == "" {
		return i.Server
	}
	return i.Server + ":" + i.Tool
}

// Message is a notification. Its JSON form is the body of a request to a webhook with the format json.
type Message struct {
	ID    string    `json:"id"`
	Time  time.Time `json:"time"`
	Text  string    `json:"text"`
	Link  string    `json:"link"`
	Items []Item    `json:"items"`
	More  int       `json:"more,omitempty"` // items that Items does not contain

	ui string
}

// newMessage returns the message about these records. ui is the address of the web UI.
func newMessage(records []record, more int, ui string) Message {
	m := Message{ID: rand.Text(), Time: time.Now().UTC(), Items: []Item{}, More: more, ui: ui}
	for _, r := range records {
		i := r.Item
		i.Server, i.Tool, i.Count = cleanName(i.Server), cleanName(i.Tool), 0
		at := slices.IndexFunc(m.Items, func(o Item) bool { o.Count = 0; return o == i })
		if at < 0 {
			at, m.Items = len(m.Items), append(m.Items, i)
		}
		m.Items[at].Count++
	}
	m.setText()
	return m
}

// withEvents returns the part of m about the events; nil means all. ok is false if the part is empty.
func (m Message) withEvents(events []string) (part Message, ok bool) {
	if len(events) == 0 {
		return m, true
	}
	m.Items = slices.DeleteFunc(slices.Clone(m.Items), func(i Item) bool { return !slices.Contains(events, i.Event) })
	m.More = 0 // their events are unknown
	m.setText()
	return m, len(m.Items) > 0
}

// maxNames limits the names in a text for each event.
const maxNames = 3

// setText sets the text and the link for the items.
func (m *Message) setText() {
	var lines []string
	m.Link = m.ui + "servers"
	for _, kind := range []struct{ event, one, many string }{
		{config.NotifyCallHeld, "A call waits for your approval", "%d calls wait for your approval"},
		{config.NotifyDefinitionHeld, "New or changed definitions wait for your review", "New or changed definitions wait for your review"},
		{config.NotifyLoginNeeded, "A server needs a login", "%d servers need a login"},
	} {
		count, names := 0, []string{}
		for _, i := range m.Items {
			if i.Event == kind.event {
				count += i.Count
				names = append(names, i.name())
			}
		}
		if count == 0 {
			continue
		}
		if kind.event != config.NotifyLoginNeeded {
			m.Link = m.ui + "approvals"
		}
		line := kind.one
		if count > 1 {
			line = strings.Replace(kind.many, "%d", fmt.Sprint(count), 1)
		}
		line += ": " + strings.Join(names[:min(len(names), maxNames)], ", ")
		if more := len(names) - maxNames; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, line+".")
	}
	if m.More > 0 {
		lines = append(lines, fmt.Sprintf("%d more wait.", m.More))
	}
	m.Text = strings.Join(lines, "\n")
}

// maxName limits the length of a name, in characters.
const maxName = 64

// cleanName returns a name without characters that a receiver could interpret: only letters, digits, "-", "_" and "."
// stay.
func cleanName(name string) string {
	var out []rune
	for _, r := range name {
		if len(out) == maxName {
			return string(out) + "…"
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r) {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
