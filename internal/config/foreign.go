package config

import (
	_ "embed"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/wordlist"
)

//go:embed foreign.txt
var foreignText string

var foreignKeys = readForeign(wordlist.Read(foreignText))

// readForeign returns the table of foreign.txt: object → key, perhaps with a
// type → what to do instead.
func readForeign(f wordlist.File) map[string]map[string]string {
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

// typesOf are the types that foreign.txt tells apart.
var typesOf = map[hujson.Kind]string{'t': "bool", 'f': "bool", '{': "object"}

// foreign returns what to do instead of a key that other clients have and that
// has no effect here; ok reports whether it is one.
func foreign(object, name string, value hujson.Kind) (advice string, ok bool) {
	if advice, ok = foreignKeys[object][name+"="+typesOf[value]]; !ok {
		advice, ok = foreignKeys[object][name]
	}
	return advice, ok
}

// ForeignKey returns what to do instead of a key of a server that other clients
// have and that has no effect here; ok reports whether it is one. value is the
// first byte of the key's value in JSON.
func ForeignKey(name string, value byte) (advice string, ok bool) {
	return foreign("server", name, hujson.Kind(value))
}

// ServerKey returns the key of a server that a name stands for, "" when it is
// unknown, and whether the name says the opposite.
func ServerKey(name string) (key string, inverse bool) {
	keys := new(Server).keys()
	at, inverse := find(keys, name)
	if at < 0 {
		return "", false
	}
	return keys[at].name, inverse
}
