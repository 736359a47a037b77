package gateway

import (
	"encoding/json"
	"strconv"

	"mcpproxy/internal/policy"
)

// Counts tells how many tools of a server have each status. In JSON it is an
// object with a member for each: callable, and reasons with any tool.
type Counts [policy.StatusCount]int

// Words are the members, first the one that is always there.
func (Counts) Words() []string {
	words := []string{policy.Callable.Word()}
	for _, s := range policy.Statuses() {
		words = append(words, s.Word())
	}
	return words
}

// MarshalJSON implements json.Marshaler.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := strconv.AppendInt([]byte(`{"callable":`), int64(c[policy.Callable]), 10)
	for _, s := range policy.Statuses() {
		if c[s] > 0 {
			out = strconv.AppendInt(append(out, `,"`+s.Word()+`":`...), int64(c[s]), 10)
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	var members map[string]int
	err := json.Unmarshal(raw, &members)
	for s := range c {
		c[s] = members[policy.Status(s).Word()]
	}
	return err
}
