package config

import (
	"reflect"
	"slices"
)

// Change is a change of the configuration. It contains no values.
type Change struct {
	// Keys are the changed paths: "tools_limit", "mcpServers.github".
	Keys []string
	// NeedsRestart are the keys whose value takes effect after a restart, from this or an
	// earlier change.
	NeedsRestart []string
	// Unconfirmed are the keys of a saved file that await confirmation. Reported
	// separately when they differ from before.
	Unconfirmed []string
	// Err is why the file was rejected; nil when it was applied.
	Err error
}

// changedKeys returns the keys that differ between two configurations, among those that
// matter.
func changedKeys(a, b *Config, matters func(configKey) bool) []string {
	var out []string
	after := b.keys()
	for i, k := range a.keys() {
		switch {
		case k.field == nil || !matters(k) || isSameValue(k, after[i]):
		case k.kind() == servers:
			out = append(out, changedServers(a.Servers, b.Servers)...)
		default:
			out = append(out, k.name)
		}
	}
	return out
}

// acceptEveryKey accepts every key.
func acceptEveryKey(configKey) bool { return true }

func isSameValue(a, b configKey) bool {
	if a.reflectField().Kind() == reflect.Slice && a.reflectField().Len() == 0 && b.reflectField().Len() == 0 {
		return true // absent or empty
	}
	return reflect.DeepEqual(a.value(), b.value())
}

func changedServers(a, b []Server) []string {
	var out []string
	for _, s := range a {
		i := slices.IndexFunc(b, func(t Server) bool { return t.Name == s.Name })
		if i < 0 || !reflect.DeepEqual(s, b[i]) {
			out = append(out, joinPath("mcpServers", s.Name))
		}
	}
	for _, s := range b {
		if !slices.ContainsFunc(a, func(t Server) bool { return t.Name == s.Name }) {
			out = append(out, joinPath("mcpServers", s.Name))
		}
	}
	if out == nil {
		return []string{"mcpServers"} // their order
	}
	return out
}
