package config

import (
	"encoding/json"
	"slices"
)

// Difference is a key that differs between two configurations: "tools_limit",
// "mcpServers.github.env". The values are as shown. A server that only one of them has is
// null in the other; its key is "mcpServers.github".
type Difference struct {
	Key      string
	From, To json.RawMessage
}

var null = json.RawMessage("null")

// differences returns the differences between two configurations. Masked values may look
// equal.
func differences(a, b *Config) (out []Difference) {
	from, to := a.Shown().keys(), b.Shown().keys()
	after := b.keys()
	for i, k := range a.keys() {
		switch {
		case k.field == nil || sameValue(k, after[i]):
		case k.kind() == servers:
			out = append(out, serverDifferences(a.Servers, b.Servers)...)
		default:
			out = append(out, Difference{k.name, encodedValue(from[i]), encodedValue(to[i])})
		}
	}
	return out
}

// encodedValue returns the value of a key as in the file.
func encodedValue(k key) json.RawMessage {
	value, err := encodeValue(k.value())
	if err != nil {
		return null
	}
	return value
}

func serverDifferences(a, b []Server) (out []Difference) {
	for _, s := range a {
		if i := indexOfServer(b, s.Name); i < 0 {
			out = append(out, Difference{join("mcpServers", s.Name), shownServer(s), null})
		} else {
			out = append(out, serverDifference(s, b[i])...)
		}
	}
	for _, s := range b {
		if indexOfServer(a, s.Name) < 0 {
			out = append(out, Difference{join("mcpServers", s.Name), null, shownServer(s)})
		}
	}
	ordered := slices.EqualFunc(a, b, func(s, t Server) bool { return s.Name == t.Name })
	if len(out) == 0 && !ordered {
		out = append(out, Difference{"mcpServers", orderOf(a), orderOf(b)})
	}
	return out
}

func serverDifference(a, b Server) (out []Difference) {
	shownA, shownB := a.Shown(), b.Shown()
	shownA.Trust, shownB.Trust = a.Trust, b.Trust // the default if it is not set
	from, to, after := shownA.keys(), shownB.keys(), b.keys()
	for i, k := range a.keys() {
		if k.field != nil && k.name != "name" && !sameValue(k, after[i]) {
			out = append(out, Difference{keyPath(join("mcpServers", a.Name), k), encodedValue(from[i]), encodedValue(to[i])})
		}
	}
	return out
}

// keyPath returns the path of a key of the object at path.
func keyPath(path string, k key) string {
	if path == "" {
		return k.name
	}
	return path + "." + k.name
}

func indexOfServer(servers []Server, name string) int {
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

// differenceKeys returns the keys of differences.
func differenceKeys(all []Difference) []string {
	keys := []string{}
	for _, d := range all {
		keys = append(keys, d.Key)
	}
	return keys
}
