package clients

import (
	"fmt"

	"mcpproxy/internal/mcp/wirejson"
)

// ProxyAddress is the address at which a client reaches MCPProxy: a URL or a command. Token is an agent token, or "".
type ProxyAddress struct {
	URL     string
	Command string // an absolute path
	Args    []string
	Token   string
	Surface Surface // the surface at the address; "" means SurfaceSearch
	Profile string  // the profile in the address

	kept entryObject // credentials of an entry that this one replaces
}

// isSearch reports whether the address serves the search surface.
func (a ProxyAddress) isSearch() bool { return a.Surface == "" || a.Surface == SurfaceSearch }

// DefaultServerName is MCPProxy's name in clients.
const DefaultServerName = "mcpproxy"

// tokenVariable is the environment variable with the agent token of `mcpproxy stdio`.
const tokenVariable = "MCPPROXY_TOKEN"

// entryMember and entryObject keep the order of members.
type entryMember struct {
	name  string
	value any
}

type entryObject []entryMember

// MarshalJSON encodes the members in order.
func (o entryObject) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		value, err := wirejson.MarshalWithoutHTMLEscape(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(wirejson.AppendString(out, m.name), ':'), value...)
	}
	return append(out, '}'), nil
}

// authHeaders returns the header with the token, or the kept credentials if there is no token.
func authHeaders(a ProxyAddress, key string) entryObject {
	if a.Token == "" {
		return a.kept
	}
	return entryObject{{key, entryObject{{"Authorization", "Bearer " + a.Token}}}}
}

// entryWithURLKey returns a function that builds an entry with the URL under that key.
func entryWithURLKey(key string) func(ProxyAddress) entryObject {
	return func(a ProxyAddress) entryObject {
		return append(entryObject{{key, a.URL}}, authHeaders(a, "headers")...)
	}
}

// entryWithType returns a function that builds an entry with a transport type.
func entryWithType(kind string) func(ProxyAddress) entryObject {
	return func(a ProxyAddress) entryObject {
		return append(entryObject{{"type", kind}, {"url", a.URL}}, authHeaders(a, "headers")...)
	}
}

// commandEntry returns an entry with a command.
func commandEntry(a ProxyAddress) entryObject {
	o := entryObject{{"command", a.Command}, {"args", a.Args}}
	if a.Token != "" {
		return append(o, entryMember{"env", entryObject{{tokenVariable, a.Token}}})
	}
	return append(o, a.kept...)
}

func codexEntry(a ProxyAddress) entryObject {
	return append(entryObject{{"url", a.URL}}, authHeaders(a, "http_headers")...)
}

func copilotEntry(a ProxyAddress) entryObject {
	return append(append(entryObject{{"type", "http"}, {"url", a.URL}}, authHeaders(a, "headers")...), entryMember{"tools", []string{"*"}})
}

func opencodeEntry(a ProxyAddress) entryObject {
	return append(append(entryObject{{"type", "remote"}, {"url", a.URL}}, authHeaders(a, "headers")...), entryMember{"enabled", true})
}

func gooseEntry(name string, a ProxyAddress) entryObject {
	o := entryObject{{"name", name}, {"description", "All MCP servers behind one"}, {"type", "streamable_http"}, {"uri", a.URL}, {"enabled", true}, {"timeout", 300}}
	return append(o, authHeaders(a, "headers")...)
}
