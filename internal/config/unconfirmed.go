package config

import (
	"cmp"
	"fmt"
	"strings"
)

// UnconfirmedChanges is the part of the file that is not applied, because it grants more access than a user has
// confirmed.
type UnconfirmedChanges struct {
	Differences []Difference // from the current configuration
	// Why is the reason why no confirmation is valid; "" if one is valid, or none is needed.
	Why string
	// Remedy is the step to take before anything can be confirmed; "" if there is none.
	Remedy string
	// Presence is the value in the file, whether or not it is applied.
	Presence Presence
}

// Count returns the number of changes that await confirmation.
func (u UnconfirmedChanges) Count() int {
	if u.Why != "" {
		return max(1, len(u.Differences))
	}
	return len(u.Differences)
}

// Warnings returns the warnings about the unconfirmed changes.
func (u UnconfirmedChanges) Warnings() (all []string) {
	const most = 10
	if u.Why != "" {
		all = append(all, "configuration that grants more access is not applied: "+u.Why+"; "+cmp.Or(u.Remedy, "review and confirm it with `mcpproxy config confirm`"))
	}
	if n := len(u.Differences); n > 0 {
		keys := strings.Join(differenceKeys(u.Differences[:min(n, most)]), ", ")
		if n > most {
			keys += fmt.Sprintf(" and %d more", n-most)
		}
		if u.Remedy == "" {
			keys += "; review and confirm them with `mcpproxy config confirm`"
		}
		all = append(all, "these changes in the file grant more access and wait for confirmation: "+keys)
	}
	return all
}
