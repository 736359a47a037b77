package clients

import (
	"fmt"

	"mcpproxy/internal/mcp/wirejson"
)

// Address is where a client finds MCPProxy. Clients that connect have the URL, those
// that start commands the command. Token is the text of an agent token, or "".
type Address struct {
	URL     string
	Command string // an absolute path
	Args    []string
	Token   string
}

// Server is the name under which MCPProxy stands in clients.
const Server = "mcpproxy"

// tokenVariable has the agent token of `mcpproxy stdio`.
const tokenVariable = "MCPPROXY_TOKEN"

// member and object keep the order in which an entry is written.
type member struct {
	name  string
	value any
}

type object []member

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		value, err := wirejson.Marshal(m.value)
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

// headers are what carries the token over HTTP, none without one.
func headers(a Address, key string) object {
	if a.Token == "" {
		return nil
	}
	return object{{key, object{{"Authorization", "Bearer " + a.Token}}}}
}

// at is an entry with the address under a key.
func at(key string) func(Address) object {
	return func(a Address) object { return append(object{{key, a.URL}}, headers(a, "headers")...) }
}

// typed is an entry that says how the address is spoken to.
func typed(kind string) func(Address) object {
	return func(a Address) object {
		return append(object{{"type", kind}, {"url", a.URL}}, headers(a, "headers")...)
	}
}

// started is an entry with a command.
func started(a Address) object {
	o := object{{"command", a.Command}, {"args", a.Args}}
	if a.Token != "" {
		o = append(o, member{"env", object{{tokenVariable, a.Token}}})
	}
	return o
}

func codexEntry(a Address) object {
	return append(object{{"url", a.URL}}, headers(a, "http_headers")...)
}

func copilotEntry(a Address) object {
	return append(append(object{{"type", "http"}, {"url", a.URL}}, headers(a, "headers")...), member{"tools", []string{"*"}})
}

func opencodeEntry(a Address) object {
	return append(append(object{{"type", "remote"}, {"url", a.URL}}, headers(a, "headers")...), member{"enabled", true})
}

func gooseEntry(a Address) object {
	o := object{{"name", Server}, {"description", "All MCP servers behind one"}, {"type", "streamable_http"}, {"uri", a.URL}, {"enabled", true}, {"timeout", 300}}
	return append(o, headers(a, "headers")...)
}
