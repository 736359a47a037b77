package config

import (
	"encoding/json"
	"slices"
)

// Difference is a key that differs between two configurations: "tools_limit", "mcpServers.github.env". The values are
// as shown. A server that exists in only one of them is null in the other, and its key is "mcpServers.github".
type Difference struct {
	Key      string
	From, To json.RawMessage
}

var null = json.RawMessage("null")

// findDifferences returns the differences between two configurations. Masked values may look
// equal.
func findDifferences(a, b *Config) (out []Difference) {
	from, to := a.Masked().keys(), b.Masked().keys()
	after := b.keys()
	for i, k := range a.keys() {
		switch {
		case k.field == nil || isSameValue(k, after[i]):
		case k.kind() == servers:
			out = append(out, findServerDifferences(a.Servers, b.Servers)...)
		default:
			out = append(out, Difference{k.name, encodeKeyValue(from[i]), encodeKeyValue(to[i])})
		}
	}
	return out
}

// encodeKeyValue returns the value of a key as in the file.
func encodeKeyValue(k configKey) json.RawMessage {
	value, err := encodeValue(k.value())
	if err != nil {
		return null
	}
	return value
}

func findServerDifferences(a, b []Server) (out []Difference) {
	for _, s := range a {
		if i := indexOfServer(b, s.Name); i < 0 {
			out = append(out, Difference{joinPath("mcpServers", s.Name), maskedServerJSON(s), null})
		} else {
			out = append(out, diffServer(s, b[i])...)
		}
	}
	for _, s := range b {
		if indexOfServer(a, s.Name) < 0 {
			out = append(out, Difference{joinPath("mcpServers", s.Name), null, maskedServerJSON(s)})
		}
	}
	ordered := slices.EqualFunc(a, b, func(s, t Server) bool { return s.Name == t.Name })
	if len(out) == 0 && !ordered {
		out = append(out, Difference{"mcpServers", serverOrderJSON(a), serverOrderJSON(b)})
	}
	return out
}

func diffServer(a, b Server) (out []Difference) {
	shownA, shownB := a.Masked(), b.Masked()
	shownA.Trust, shownB.Trust = a.Trust, b.Trust // the default if trust is not set
	from, to, after := shownA.keys(), shownB.keys(), b.keys()
	for i, k := range a.keys() {
		if k.field != nil && k.name != "name" && !isSameValue(k, after[i]) {
			out = append(out, Difference{keyPath(joinPath("mcpServers", a.Name), k), encodeKeyValue(from[i]), encodeKeyValue(to[i])})
		}
	}
	return out
}

// keyPath returns the path of a key of the object at path.
func keyPath(path string, k configKey) string {
	if path == "" {
		return k.name
	}
	return path + "." + k.name
}

func indexOfServer(servers []Server, name string) int {
	return slices.IndexFunc(servers, func(s Server) bool { return s.Name == name })
}

func maskedServerJSON(s Server) json.RawMessage {
	shown := s.Masked()
	shown.Trust = s.Trust
	text, err := encodeServer(shown)
	if err != nil {
		return null
	}
	return text
}

func serverOrderJSON(servers []Server) json.RawMessage {
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
