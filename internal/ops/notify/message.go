package notify

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"mcpproxy/internal/config"
)

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
