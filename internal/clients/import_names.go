package clients

import (
	"strconv"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
)

// UsedServerNames contains the used server names by their confusable form.
type UsedServerNames map[string]string

// AddName marks a name as used.
func (n UsedServerNames) AddName(name string) {
	for _, look := range config.ConfusableSkeletons(name) {
		n[look] = name
	}
}

// UniqueName returns a valid name that is derived from a client's name and not confusable with a used one. It appends a
// number if necessary.
func (n UsedServerNames) UniqueName(called string) string {
	base := toValidServerName(called)
	name := base
	for i := 2; n.isTaken(name); i++ {
		name = appendNumber(base, i)
	}
	return name
}

func (n UsedServerNames) isTaken(name string) bool {
	for _, look := range config.ConfusableSkeletons(name) {
		if n[look] != "" {
			return true
		}
	}
	return false
}

// toValidServerName converts a client's name into a valid server name.
func toValidServerName(called string) string {
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

// appendNumber returns a name with a number, within the maximum length.
func appendNumber(name string, n int) string {
	end := "-" + strconv.Itoa(n)
	return name[:min(len(name), tool.MaxServerName-len(end))] + end
}
