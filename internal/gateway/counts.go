package gateway

import (
	"encoding/json"
	"strconv"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/policy"
)

// Counts tells how many tools of a server have each status. In JSON it is an
// object with a member for each: callable, and reasons with any tool. The last
// count is of those ForClients.
type Counts [policy.StatusCount + 1]int

// ForClients is the status of a tool that nothing locks, but that its server has
// only for clients that it can ask something, on the server's own address: who
// looks here cannot call it (ADR 0053).
const ForClients = "for_clients"

// CountForClients is the index of their number in Counts.
const CountForClients = policy.StatusCount

// StatusOf returns the status of a tool as it is shown; "" for one that can be called.
func StatusOf(t *catalog.Tool) string {
	if t.Callable() && t.ForClients {
		return ForClients
	}
	return t.Status.String()
}

// Add counts a tool.
func (c *Counts) Add(t *catalog.Tool) {
	if t.Callable() && t.ForClients {
		c[CountForClients]++
	} else {
		c[t.Status]++
	}
}

// ByWord returns the counts of those there are, by their words.
func (c *Counts) ByWord() map[string]int {
	all := map[string]int{}
	for i, n := range c {
		switch {
		case n == 0:
		case i == CountForClients:
			all[ForClients] = n
		default:
			all[policy.Status(i).Word()] = n
		}
	}
	return all
}

// count is nil when every tool can be called.
func count(tools []*catalog.Tool) *Counts {
	var c Counts
	for _, t := range tools {
		c.Add(t)
	}
	if c[policy.Callable] == len(tools) {
		return nil
	}
	return &c
}

// Words are the members, first the one that is always there.
func (Counts) Words() []string {
	words := []string{policy.Callable.Word()}
	for _, s := range policy.Statuses() {
		words = append(words, s.Word())
	}
	return append(words, ForClients)
}

// MarshalJSON implements json.Marshaler.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := strconv.AppendInt([]byte(`{"callable":`), int64(c[policy.Callable]), 10)
	reason := func(word string, n int) {
		if n > 0 {
			out = strconv.AppendInt(append(out, `,"`+word+`":`...), int64(n), 10)
		}
	}
	for _, s := range policy.Statuses() {
		reason(s.Word(), c[s])
	}
	reason(ForClients, c[CountForClients])
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	var members map[string]int
	err := json.Unmarshal(raw, &members)
	for s := range policy.Status(policy.StatusCount) {
		c[s] = members[s.Word()]
	}
	c[CountForClients] = members[ForClients]
	return err
}
