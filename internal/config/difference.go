package config

import (
	"encoding/json"
	"slices"
)

// Difference is a key whose value is another one in two configurations:
// "tools_limit", "mcpServers.github.env". The values are those that may be shown;
// null is none: of a server that only one of them has, whose key is
// "mcpServers.github".
type Difference struct {
	Key      string
	From, To json.RawMessage
}

var null = json.RawMessage("null")

// differences returns what differs between two configurations. Values that are
// masked may look the same.
func differences(a, b *Config) (out []Difference) {
	from, to := a.Shown().keys(), b.Shown().keys()
	after := b.keys()
	for i, k := range a.keys() {
		switch {
		case k.to == nil || same(k, after[i]):
		case k.kind() == servers:
			out = append(out, serverDifferences(a.Servers, b.Servers)...)
		default:
			out = append(out, Difference{k.name, encoded(from[i]), encoded(to[i])})
		}
	}
	return out
}

// encoded is the value of a key as the file has it.
func encoded(k key) json.RawMessage {
	value, err := encodeValue(k.value())
	if err != nil {
		return null
	}
	return value
}

func serverDifferences(a, b []Server) (out []Difference) {
	for _, s := range a {
		if i := named(b, s.Name); i < 0 {
			out = append(out, Difference{join("mcpServers", s.Name), shownServer(s), null})
		} else {
			out = append(out, ofServer(s, b[i])...)
		}
	}
	for _, s := range b {
		if named(a, s.Name) < 0 {
			out = append(out, Difference{join("mcpServers", s.Name), null, shownServer(s)})
		}
	}
	ordered := slices.EqualFunc(a, b, func(s, t Server) bool { return s.Name == t.Name })
	if len(out) == 0 && !ordered {
		out = append(out, Difference{"mcpServers", orderOf(a), orderOf(b)})
	}
	return out
}

func ofServer(a, b Server) (out []Difference) {
	shownA, shownB := a.Shown(), b.Shown()
	shownA.Trust, shownB.Trust = a.Trust, b.Trust // as decided for those that do not say it
	from, to, after := shownA.keys(), shownB.keys(), b.keys()
	for i, k := range a.keys() {
		if k.to != nil && k.name != "name" && !same(k, after[i]) {
			out = append(out, Difference{of(join("mcpServers", a.Name), k), encoded(from[i]), encoded(to[i])})
		}
	}
	return out
}

// of is the path of a key of the object at path.
func of(path string, k key) string {
	if path == "" {
		return k.name
	}
	return path + "." + k.name
}

func named(servers []Server, name string) int {
	return slices.IndexFunc(servers, func(s Server) bool { return s.Name == name })
}

func shownServer(s Server) json.RawMessage {
	shown := s.Shown()
	shown.Trust = s.Trust
	text, err := encodeServer(shown)
	if err != nil {
		return null
	}
	return text
}

func orderOf(servers []Server) json.RawMessage {
	names := []string{}
	for _, s := range servers {
		names = append(names, s.Name)
	}
	text, err := encodeValue(names)
	if err != nil {
		return null
	}
	return text
}

// keysOf are the keys of differences.
func keysOf(all []Difference) []string {
	keys := []string{}
	for _, d := range all {
		keys = append(keys, d.Key)
	}
	return keys
}
