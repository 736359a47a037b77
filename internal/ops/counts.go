package ops

import (
	"encoding/json"
	"strconv"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
)

// Counts tells how many tools of a server have each status. In JSON it is an
// object with a member for each: callable, and reasons with any tool. The last
// counts are of those ForClients and Blocked.
type Counts [policy.StatusCount + 2]int

// ForClients is the status of a tool that nothing locks, but that its server has
// only for clients that it can ask something, on the server's own address: who
// looks here cannot call it (ADR 0053).
const ForClients = "for_clients"

// CountForClients is the index of their number in Counts.
const CountForClients = policy.StatusCount

// Blocked is the status of a tool that would wait for approval, but whose definition a user
// has refused: it waits for no one.
const Blocked = "blocked"

// CountBlocked is the index of their number in Counts.
const CountBlocked = policy.StatusCount + 1

// StatusOf returns the status of a tool as it is shown; "" for one that can be called.
func StatusOf(t *catalog.Tool) string {
	if t.Callable() && t.ForClients {
		return ForClients
	}
	return statusWord(t.Status, t.Blocked)
}

// statusWord returns a status as it is shown, of a definition that a user has blocked or not.
func statusWord(s policy.Status, blocked bool) string {
	if s == policy.PendingApproval && blocked {
		return Blocked
	}
	return s.String()
}

// Add counts a tool.
func (c *Counts) Add(t *catalog.Tool) {
	switch StatusOf(t) {
	case ForClients:
		c[CountForClients]++
	case Blocked:
		c[CountBlocked]++
	default:
		c[t.Status]++
	}
}

// ForAgents returns the counts in the statuses that agents know: a blocked tool waits for approval.
func (c *Counts) ForAgents() *Counts {
	if c == nil || c[CountBlocked] == 0 {
		return c
	}
	told := *c
	told[policy.PendingApproval] += told[CountBlocked]
	told[CountBlocked] = 0
	return &told
}

// ByWord returns the counts of those there are, by their words.
func (c *Counts) ByWord() map[string]int {
	all := map[string]int{}
	for i, n := range c {
		switch {
		case n == 0:
		case i == CountForClients:
			all[ForClients] = n
		case i == CountBlocked:
			all[Blocked] = n
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
	return append(words, ForClients, Blocked)
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
	reason(Blocked, c[CountBlocked])
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	var members map[string]int
	err := json.Unmarshal(raw, &members)
	for s := range policy.Status(policy.StatusCount) {
		c[s] = members[s.Word()]
	}
	c[CountForClients], c[CountBlocked] = members[ForClients], members[Blocked]
	return err
}
