package clients

import (
	"strconv"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
)

// ServerNames are the names that servers have, by what they look like.
type ServerNames map[string]string

// Add notes that a name is taken.
func (n ServerNames) Add(name string) {
	for _, look := range config.ConfusableNames(name) {
		n[look] = name
	}
}

// Unique returns a name for what a client calls a server, that no other one has or
// seems to have: numbered, if need be.
func (n ServerNames) Unique(called string) string {
	base := validName(called)
	name := base
	for i := 2; n.isTaken(name); i++ {
		name = numbered(base, i)
	}
	return name
}

func (n ServerNames) isTaken(name string) bool {
	for _, look := range config.ConfusableNames(name) {
		if n[look] != "" {
			return true
		}
	}
	return false
}

// validName makes a name that a server can have of what a client calls it.
func validName(called string) string {
	if tool.CheckServerName(called) == nil {
		return called
	}
	var name strings.Builder
	for _, r := range called {
		if r >= 0x80 || tool.CheckServerName(string(r)) != nil && r != '.' {
			r = '-'
		}
		name.WriteRune(r)
	}
	out := name.String()
	for _, twice := range []string{"--", "__"} {
		for strings.Contains(out, twice) {
			out = strings.ReplaceAll(out, twice, twice[1:])
		}
	}
	out = strings.Trim(out[:min(len(out), tool.MaxServerName)], "-.")
	if tool.CheckServerName(out) != nil {
		return "server"
	}
	return out
}

// numbered is a name with a number, as long as a name may be.
func numbered(name string, n int) string {
	end := "-" + strconv.Itoa(n)
	return name[:min(len(name), tool.MaxServerName-len(end))] + end
}
