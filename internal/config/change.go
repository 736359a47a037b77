package config

import (
	"reflect"
	"slices"
)

// Change is a change of the configuration. It contains no values.
type Change struct {
	// Keys are the changed paths: "tools_limit", "mcpServers.github".
	Keys []string
	// NeedsRestart lists the keys whose value takes effect after a restart, from this or an earlier change.
	NeedsRestart []string
	// Unconfirmed lists the keys of the saved file that await confirmation. A change of this list is reported
	// separately.
	Unconfirmed []string
	// Err is the reason why the file was rejected; nil if it was applied.
	Err error
}

// changedKeys returns the keys that differ between two configurations and that matters accepts.
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
		return []string{"mcpServers"} // their order differs
	}
	return out
}
