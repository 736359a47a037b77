package config

import (
	_ "embed"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/sectionfile"
)

//go:embed other_clients.txt
var foreignText string

var foreignKeys = parseOtherClientsKeys(sectionfile.Parse(foreignText))

// parseOtherClientsKeys returns the table of other_clients.txt. It maps an object to its keys, which may include a
// type, and a key to its advice.
func parseOtherClientsKeys(f sectionfile.Sections) map[string]map[string]string {
	table := map[string]map[string]string{}
	for _, s := range f {
		table[s.Head] = map[string]string{}
		for _, line := range s.Lines {
			name, advice, _ := strings.Cut(line, " ")
			table[s.Head][name] = advice
		}
	}
	return table
}

// typesOf maps the kind of a JSON value to its type in other_clients.txt.
var typesOf = map[hujson.Kind]string{'t': "bool", 'f': "bool", '{': "object"}

// otherClientKeyAdvice returns the advice for another client's key that has no effect here;
// ok reports whether it is one.
func otherClientKeyAdvice(object, name string, value hujson.Kind) (advice string, ok bool) {
	if advice, ok = foreignKeys[object][name+"="+typesOf[value]]; !ok {
		advice, ok = foreignKeys[object][name]
	}
	return advice, ok
}

// OtherClientServerKeyAdvice returns the advice for another client's server key that has no effect here;
// ok reports whether it is one. value is the first byte of the key's JSON value.
func OtherClientServerKeyAdvice(name string, value byte) (advice string, ok bool) {
	if advice, ok := otherClientKeyAdvice("import", name, hujson.Kind(value)); ok {
		return advice, true
	}
	return otherClientKeyAdvice("server", name, hujson.Kind(value))
}

// CanonicalServerKey returns the canonical server key of a name, "" if it is unknown. inverse reports whether the
// name has the opposite meaning.
func CanonicalServerKey(name string) (key string, inverse bool) {
	keys := new(Server).keys()
	at, inverse := findKey(keys, name)
	if at < 0 {
		return "", false
	}
	return keys[at].name, inverse
}
