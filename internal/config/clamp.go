package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// grants returns the changes of a configuration that grant more access or record less. A
// server or profile that only next has counts as a whole. Both are parsed.
func grants(was, next *Config) []Difference {
	_, found := clampExcept(was, next, nil)
	return found
}

// Clamp returns next with changes that grant more access replaced by the values of was.
// The order of servers, and comments, are ignored. Both are parsed.
func Clamp(was, next *Config) *Config {
	c, _ := clampExcept(was, next, nil)
	return c
}

// keysBetween returns a function that reports whether a key differs between two files;
// always true without a first file.
func keysBetween(was, next *Config) func(key string) bool {
	if was == nil {
		return func(string) bool { return true }
	}
	w := clamper{differs: true}
	w.apply(was, next)
	keys := differenceKeys(w.found)
	return func(key string) bool { return slices.Contains(keys, key) }
}

// clampExcept is Clamp with exceptions for the allowed keys. It also returns what was
// withheld.
func clampExcept(was, next *Config, let func(key string) bool) (*Config, []Difference) {
	w := clamper{allowed: let}
	return w.apply(was, next), w.found
}

// apply returns next clamped to was.
func (w *clamper) apply(was, next *Config) *Config {
	out, written, shown := *next, *next.asWritten, *next.shown
	out.asWritten, out.shown = &written, &shown
	w.clampKeys("", keyVersions{was.keys(), was.asWritten.keys(), was.shown.keys()}, keyVersions{out.keys(), written.keys(), shown.keys()})
	w.clampServers(was, &out)
	w.clampProfiles(was, &out)
	out.revision, out.sharedRevision = revisionOf(out.shown), sharedRevisionOf(out.shown)
	return &out
}

// keyVersions are the keys of one object: resolved, as written, and as shown.
type keyVersions [3][]key

// clamper collects changes that grant more access.
type clamper struct {
	allowed func(key string) bool
	differs bool // every difference counts
	found   []Difference
}

// withholds reports whether a change is not allowed, and records it.
func (w *clamper) withholds(name string, from, to json.RawMessage) bool {
	if w.allowed != nil && w.allowed(name) {
		return false
	}
	w.found = append(w.found, Difference{name, from, to})
	return true
}

// clampKeys restores the previous values of keys that grant more access.
func (w *clamper) clampKeys(path string, was, next keyVersions) {
	for i, k := range next[0] {
		if k.field == nil || k.kind() == servers || k.kind() == profiles || k.name == "name" || !w.grants(was, next, i) {
			continue
		}
		from, to := encodedValue(was[2][i]), encodedValue(next[2][i])
		if k.name == "trust" { // the resolved value if it is not set
			from, to = encodedValue(was[0][i]), encodedValue(k)
		}
		if w.withholds(keyPath(path, k), from, to) {
			for v := range next {
				next[v][i].reflectField().Set(was[v][i].reflectField())
			}
		}
	}
}

// grants reports whether the change of a key grants more access. If it may contain
// references, the written text counts, too, because their values can change later.
func (w *clamper) grants(was, next keyVersions, i int) bool {
	if w.differs {
		return !sameValue(was[0][i], next[0][i]) || !sameValue(was[1][i], next[1][i])
	}
	if grantsMore(was[0][i], next[0][i]) {
		return true
	}
	return next[0][i].oneOf == nil && grantsMore(was[1][i], next[1][i])
}

func grantsMore(was, is key) bool {
	switch is.kind() {
	case overrides:
		return hintsLoosen(was.value().([]HintOverride), is.value().([]HintOverride))
	case laneRules:
		return lanesLoosen(was.value().([]LaneRule), is.value().([]LaneRule))
	case toolLists:
		return toolsLoosen(was.value().([]policy.ScopeTools), is.value().([]policy.ScopeTools))
	}
	return !sameValue(was, is) && is.grants.grants(was.value(), is.value())
}

func (w *clamper) clampServers(was, out *Config) {
	all := out.Servers
	out.Servers, out.asWritten.Servers, out.shown.Servers = nil, nil, nil
	for _, s := range all {
		if i := indexOfServer(was.Servers, s.Name); i >= 0 {
			s = w.clampServer(was.Servers[i], s, out)
		} else if w.withholds(join("mcpServers", s.Name), null, shownServer(s)) {
			continue
		}
		out.Servers = append(out.Servers, s)
		out.asWritten.Servers, out.shown.Servers = append(out.asWritten.Servers, *s.asWritten), append(out.shown.Servers, *s.shown)
	}
}

func (w *clamper) clampServer(was, s Server, out *Config) Server {
	written, shown := *s.asWritten, *s.shown
	s.asWritten, s.shown = &written, &shown
	w.clampKeys(join("mcpServers", s.Name), keyVersions{was.keys(), was.asWritten.keys(), was.shown.keys()}, keyVersions{s.keys(), written.keys(), shown.keys()})
	if len(written.EnabledTools) > 0 && len(written.DisabledTools) > 0 { // they exclude each other, so both wait
		for _, v := range [][2]*Server{{&s, &was}, {&written, was.asWritten}, {&shown, was.shown}} {
			v[0].EnabledTools, v[0].DisabledTools = v[1].EnabledTools, v[1].DisabledTools
		}
	}
	if written.Trust == "" && s.Trust != out.defaultTrust() { // the key that it defaults to waits
		written.Trust, shown.Trust = s.Trust, s.Trust
	}
	launch := launchOf(written)
	launch.Protocol = s.Protocol
	fingerprint := launch.fingerprint()
	s.launch, s.launchFingerprint, s.TrySSE = &launch, &fingerprint, written.Protocol == "auto"
	return s
}

func (w *clamper) clampProfiles(was, out *Config) {
	all := out.Profiles
	written, shown := out.asWritten.Profiles, out.shown.Profiles
	out.Profiles, out.asWritten.Profiles, out.shown.Profiles = nil, nil, nil
	for i, p := range all {
		path := join("profiles", p.Name)
		p, raw, seen := p, written[i], shown[i]
		if at := slices.IndexFunc(was.Profiles, func(q Profile) bool { return q.Name == p.Name }); at >= 0 {
			a, b, c := was.Profiles[at], was.asWritten.Profiles[at], was.shown.Profiles[at]
			w.clampKeys(path, keyVersions{a.keys(), b.keys(), c.keys()}, keyVersions{p.keys(), raw.keys(), seen.keys()})
			p.rule = p.buildScopeRule()
		} else if w.withholds(path, null, shownProfile(p)) {
			continue
		}
		out.Profiles, out.asWritten.Profiles, out.shown.Profiles = append(out.Profiles, p), append(out.asWritten.Profiles, raw), append(out.shown.Profiles, seen)
	}
}

// hintsLoosen reports whether any tool may get more harmless hints by the second
// overrides than by the first, whatever its server declares. The last match wins per
// hint, so only two changes are certainly safe anywhere: adding a strictest hint, and
// removing a most harmless one.
func hintsLoosen(was, is []HintOverride) bool {
	before, after := hintRules(was), hintRules(is)
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && before[0] == after[0]:
			before, after = before[1:], after[1:]
		case len(after) > 0 && !after[0].grants(false):
			after = after[1:]
		case len(before) > 0 && !before[0].grants(true):
			before = before[1:]
		default:
			return true
		}
	}
	return false
}

// hintRule is one hint that an override sets for the tools of a pattern.
type hintRule struct {
	pattern, hint string
	value         any
}

func hintRules(overrides []HintOverride) (all []hintRule) {
	for _, o := range overrides {
		for _, k := range hintKeys(&o.Hints) {
			if !k.isDefault() {
				all = append(all, hintRule{o.Pattern, k.name, k.value()})
			}
		}
	}
	return all
}

// grants reports whether adding or removing it may loosen hints.
func (s hintRule) grants(out bool) bool {
	for _, k := range hintKeys(new(tool.Hints)) {
		if k.name == s.hint {
			if out {
				return k.grants.grants(s.value, k.value())
			}
			return k.grants.grants(k.value(), s.value)
		}
	}
	return true
}

// lanesLoosen reports whether a call may get a less dangerous lane by the second rules
// than by the first. Argument rules replace hints, so both adding and removing a rule may
// loosen.
func lanesLoosen(was, is []LaneRule) bool {
	if len(was) != len(is) {
		return true
	}
	for i := range is {
		if was[i].Pattern != is[i].Pattern || anyGrants(was[i].keys(), is[i].keys()) {
			return true
		}
	}
	return false
}

func anyGrants(was, is []key) bool {
	for i := range is {
		if grantsMore(was[i], is[i]) {
			return true
		}
	}
	return false
}

// toolsLoosen reports whether the second lists allow a tool that the first do not. All
// entries that match a server apply.
func toolsLoosen(was, is []policy.ScopeTools) bool {
	for _, a := range was {
		if !slices.ContainsFunc(is, func(b policy.ScopeTools) bool {
			return covered([]string{b.Server}, []string{a.Server}) && covered(a.Patterns, b.Patterns)
		}) {
			return true
		}
	}
	return false
}

// shownProfile returns a profile as it may be shown.
func shownProfile(p Profile) json.RawMessage {
	text, err := encodeObject(p.keys(), func(k key) bool { return !k.isDefault() })
	if err != nil {
		return null
	}
	return text
}

// canonical returns a parsed configuration in canonical form, with its secrets.
func (c *Config) canonical() ([]byte, error) {
	written := *c.asWritten
	emptyToNil(written.keys())
	written.Servers, written.Profiles = slices.Clone(written.Servers), slices.Clone(written.Profiles)
	slices.SortFunc(written.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(written.Profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	for i := range written.Servers {
		emptyToNil(written.Servers[i].keys())
	}
	return encodeObject(written.keys(), func(k key) bool { return !k.isDefault() })
}

// emptyToNil makes empty and absent values equal.
func emptyToNil(keys []key) {
	for _, k := range keys {
		if k.field == nil {
			continue
		}
		if v := k.reflectField(); (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
			v.SetZero()
		}
	}
}
