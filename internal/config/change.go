package config

import (
	"reflect"
	"slices"
)

// Change is what happened to the configuration. It holds no values.
type Change struct {
	// Keys are the paths that changed: "tools_limit", "mcpServers.github".
	Keys []string
	// NeedsRestart are the keys whose value waits for a restart, from this
	// change or an earlier one.
	NeedsRestart []string
	// Waits are the keys that a file widens which was saved, so that they wait for a
	// person: told by itself, when they are others than before.
	Waits []string
	// Err is why the file was refused; nil when it was applied.
	Err error
}

// changed names what differs between two configurations, among the keys that
// matter.
func changed(a, b *Config, matters func(key) bool) []string {
	var out []string
	after := b.keys()
	for i, k := range a.keys() {
		switch {
		case k.to == nil || !matters(k) || same(k, after[i]):
		case k.kind() == servers:
			out = append(out, changedServers(a.Servers, b.Servers)...)
		default:
			out = append(out, k.name)
		}
	}
	return out
}

// everyKey is for changed: every key matters.
func everyKey(key) bool { return true }

func same(a, b key) bool {
	if a.field().Kind() == reflect.Slice && a.field().Len() == 0 && b.field().Len() == 0 {
		return true // not given, or given without anything in it
	}
	return reflect.DeepEqual(a.value(), b.value())
}

func changedServers(a, b []Server) []string {
	var out []string
	for _, s := range a {
		i := slices.IndexFunc(b, func(t Server) bool { return t.Name == s.Name })
		if i < 0 || !reflect.DeepEqual(s, b[i]) {
			out = append(out, join("mcpServers", s.Name))
		}
	}
	for _, s := range b {
		if !slices.ContainsFunc(a, func(t Server) bool { return t.Name == s.Name }) {
			out = append(out, join("mcpServers", s.Name))
		}
	}
	if out == nil {
		return []string{"mcpServers"} // their order
	}
	return out
}
