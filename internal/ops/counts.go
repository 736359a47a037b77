package ops

import (
	"encoding/json"
	"strconv"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
)

// Counts counts the tools of a server by status. In JSON, it is an object with the member callable and a member for
// each other status that has tools. The last two counts are ForClients and Blocked.
type Counts [policy.StatusCount + 2]int

// ForClients is the status of an unlocked tool that requires a client with sampling or elicitation, at the server's own
// address (ADR 0053).
const ForClients = "for_clients"

// CountForClients is the index of ForClients in Counts.
const CountForClients = policy.StatusCount

// Blocked is the status of a tool whose definition a user has blocked. It does not wait for approval.
const Blocked = "blocked"

// CountBlocked is the index of Blocked in Counts.
const CountBlocked = policy.StatusCount + 1

// displayedToolStatus returns the displayed status of a tool, or "" if the tool can be called.
func displayedToolStatus(t *catalog.Tool) string {
	if t.Callable() && t.ForClients {
		return ForClients
	}
	return statusWord(t.Status, t.Blocked)
}

// statusWord returns the displayed status of a definition.
func statusWord(s policy.ToolStatus, blocked bool) string {
	if s == policy.PendingApproval && blocked {
		return Blocked
	}
	return s.String()
}

// AddTool adds a tool to the counts.
func (c *Counts) AddTool(t *catalog.Tool) {
	switch displayedToolStatus(t) {
	case ForClients:
		c[CountForClients]++
	case Blocked:
		c[CountBlocked]++
	default:
		c[t.Status]++
	}
}

// WithBlockedAsPending returns the counts with the statuses that agents see. It counts a blocked tool as pending
// approval.
func (c *Counts) WithBlockedAsPending() *Counts {
	if c == nil || c[CountBlocked] == 0 {
		return c
	}
	told := *c
	told[policy.PendingApproval] += told[CountBlocked]
	told[CountBlocked] = 0
	return &told
}

// ByStatus returns the nonzero counts by status.
func (c *Counts) ByStatus() map[string]int {
	all := map[string]int{}
	for i, n := range c {
		switch {
		case n == 0:
		case i == CountForClients:
			all[ForClients] = n
		case i == CountBlocked:
			all[Blocked] = n
		default:
			all[policy.ToolStatus(i).Word()] = n
		}
	}
	return all
}

// countByStatus counts tools by status. It returns nil if all tools can be called.
func countByStatus(tools []*catalog.Tool) *Counts {
	var c Counts
	for _, t := range tools {
		c.AddTool(t)
	}
	if c[policy.Callable] == len(tools) {
		return nil
	}
	return &c
}

// Words returns the names of the JSON members, callable first.
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
	for s := range policy.ToolStatus(policy.StatusCount) {
		c[s] = members[s.Word()]
	}
	c[CountForClients], c[CountBlocked] = members[ForClients], members[Blocked]
	return err
}
