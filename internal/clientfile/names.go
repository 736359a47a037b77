package clientfile

import (
	"strconv"
	"strings"

	"mcpproxy/internal/tool"
)

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
