package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/gate/policy"
)

// decodeProfiles decodes profiles in file order.
func (d *decoder) decodeProfiles(v hujson.Value, path string) (any, any) {
	resolved, raw := []Profile{}, []Profile{}
	for m, name := range d.eachEntry(v, path, "an object (name → profile)", CheckProfileName) {
		at := joinPath(path, name)
		p, shown := Profile{Name: name}, Profile{Name: name}
		for key, m := range d.decodeObject(m.Value, at, p.keys(), shown.keys()) {
			if list, isList := m.Value.Value.(*hujson.Array); isList && len(list.Elements) == 0 {
				d.addMistake(m.Value.StartOffset, joinPath(at, key), key+" is empty, so the profile allows nothing", "remove the key to allow all")
			}
		}
		p.rule = p.buildScopeRule()
		resolved, raw = append(resolved, p), append(raw, shown)
	}
	return resolved, raw
}

// buildScopeRule returns the scope rule of p.
func (p *Profile) buildScopeRule() *policy.ScopeRule {
	return policy.NewScopeRule(policy.ScopeLimits{Profile: p.Name, Servers: p.Servers, Tools: p.Tools, Lanes: p.Lanes})
}

// decodeProfileTools decodes the tools of a profile in file order.
func (d *decoder) decodeProfileTools(v hujson.Value, path string) (any, any) {
	resolved, raw := []policy.ScopeTools{}, []policy.ScopeTools{}
	for m, server := range d.eachEntry(v, path, "an object (server or pattern → list of tools)", CheckServerPattern) {
		list, shown := d.decodeList(m.Value, joinPath(path, server), configKey{check: checkPattern})
		patterns, _ := list.([]string)
		texts, _ := shown.([]string)
		resolved, raw = append(resolved, policy.ScopeTools{Server: server, Patterns: patterns}), append(raw, policy.ScopeTools{Server: server, Patterns: texts})
	}
	return resolved, raw
}

// warnUnknownServers warns of unknown servers in profiles and ask rules.
func (d *decoder) warnUnknownServers(g objectMembers, c *Config) {
	there := func(pattern string) bool {
		return slices.ContainsFunc(c.Servers, func(s Server) bool { return policy.MatchesPattern(pattern, s.Name) })
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.Ask.Tools)) {
		if server, _, _ := strings.Cut(pattern, ":"); !there(server) {
			d.addWarning(g["ask"].Name.StartOffset, "ask.tools", "ask.tools names "+quoteClipped(pattern)+", which matches no server", "")
		}
	}
	for _, p := range c.Profiles {
		named := slices.Clone(p.Servers)
		for _, pattern := range slices.Sorted(maps.Keys(p.Ask.Tools)) {
			server, _, _ := strings.Cut(pattern, ":")
			named = append(named, server)
		}
		for _, t := range p.Tools {
			named = append(named, t.Server)
		}
		for _, pattern := range slices.Compact(named) {
			if !there(pattern) {
				d.addWarning(g["profiles"].Name.StartOffset, joinPath("profiles", p.Name), "profile "+quoteClipped(p.Name)+" names "+quoteClipped(pattern)+", which matches no server", "")
			}
		}
	}
}
