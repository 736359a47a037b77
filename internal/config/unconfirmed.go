package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Unconfirmed is what of the file is not in force, since it widens what a person has
// confirmed.
type Unconfirmed struct {
	Differences []Difference // from what is in force
	// Why is why nothing counts that was confirmed; "" where something does, or has not to.
	Why string
	// Remedy is what has to be done before anything can be confirmed; "" is nothing.
	Remedy string
	// Presence is what the file demands, whatever is in force.
	Presence Presence
}

// Count is how much waits for a person.
func (u Unconfirmed) Count() int {
	if u.Why != "" {
		return max(1, len(u.Differences))
	}
	return len(u.Differences)
}

// Warnings are what is said of it in words.
func (u Unconfirmed) Warnings() (all []string) {
	const most = 10
	if u.Why != "" {
		all = append(all, "nothing of the configuration that widens counts: "+u.Why+"; "+cmp.Or(u.Remedy, "look at it and confirm it with `mcpproxy config confirm`"))
	}
	if n := len(u.Differences); n > 0 {
		keys := strings.Join(keysOf(u.Differences[:min(n, most)]), ", ")
		if n > most {
			keys += fmt.Sprintf(" and %d more", n-most)
		}
		if u.Remedy == "" {
			keys += "; look at them and confirm them with `mcpproxy config confirm`"
		}
		all = append(all, "the file widens what a person has confirmed, so that these wait: "+keys)
	}
	return all
}
