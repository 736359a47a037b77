package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// findAccessIncreases returns the changes from was to next that grant more access or record less. A server or profile
// that exists only in next counts as a whole. Both configurations must have been parsed.
func findAccessIncreases(was, next *Config) []Difference {
	_, found := clampAccessExcept(was, next, nil)
	return found
}

// ClampAccess returns next, in which the values of was replace the changes that grant more access. It ignores
// comments and the order of servers. Both configurations must have been parsed.
func ClampAccess(was, next *Config) *Config {
	c, _ := clampAccessExcept(was, next, nil)
	return c
}

// newChangedKeyFunc returns a function that reports whether a key differs between two files. It always reports true
// if was is nil.
func newChangedKeyFunc(was, next *Config) func(key string) bool {
	if was == nil {
		return func(string) bool { return true }
	}
	w := accessClamper{differs: true}
	w.clampConfig(was, next)
	keys := differenceKeys(w.found)
	return func(key string) bool { return slices.Contains(keys, key) }
}

// clampAccessExcept is ClampAccess with exceptions for the allowed keys. It also returns the withheld changes.
func clampAccessExcept(was, next *Config, let func(key string) bool) (*Config, []Difference) {
	w := accessClamper{allowed: let}
	return w.clampConfig(was, next), w.found
}

// clampConfig returns next clamped to was.
func (w *accessClamper) clampConfig(was, next *Config) *Config {
	out, written, shown := *next, *next.asWritten, *next.shown
	out.asWritten, out.shown = &written, &shown
	w.clampKeys("", resolvedWrittenShownKeys{was.keys(), was.asWritten.keys(), was.shown.keys()}, resolvedWrittenShownKeys{out.keys(), written.keys(), shown.keys()})
	w.clampServers(was, &out)
	w.clampProfiles(was, &out)
	out.exposure = newExposure(&out)
	out.revision, out.sharedRevision = computeRevision(out.shown), computeRevisionWithoutRestartKeys(out.shown)
	return &out
}

// resolvedWrittenShownKeys contains the keys of one object in three forms: resolved, as written, and as shown.
type resolvedWrittenShownKeys [3][]configKey

// accessClamper collects changes that grant more access.
type accessClamper struct {
	allowed func(key string) bool
	differs bool // every difference counts
	found   []Difference
}

// withholdUnlessAllowed records a change as withheld and returns true, unless its key is allowed.
func (w *accessClamper) withholdUnlessAllowed(name string, from, to json.RawMessage) bool {
	if w.allowed != nil && w.allowed(name) {
		return false
	}
	w.found = append(w.found, Difference{name, from, to})
	return true
}

// clampKeys restores the previous values of keys that grant more access.
func (w *accessClamper) clampKeys(path string, was, next resolvedWrittenShownKeys) {
	for i, k := range next[0] {
		if k.field == nil || k.kind() == servers || k.kind() == profiles || k.name == "name" || !w.keyChangeIncreasesAccess(was, next, i) {
			continue
		}
		from, to := encodeKeyValue(was[2][i]), encodeKeyValue(next[2][i])
		if k.name == "trust" { // the resolved value if it is not set
			from, to = encodeKeyValue(was[0][i]), encodeKeyValue(k)
		}
		if w.withholdUnlessAllowed(keyPath(path, k), from, to) {
			for v := range next {
				next[v][i].reflectField().Set(was[v][i].reflectField())
			}
		}
	}
}

// keyChangeIncreasesAccess reports whether the change of a key grants more access. If the key may contain references,
// the written text counts, too, because the referenced values can change later.
func (w *accessClamper) keyChangeIncreasesAccess(was, next resolvedWrittenShownKeys, i int) bool {
	if w.differs {
		return !isSameValue(was[0][i], next[0][i]) || !isSameValue(was[1][i], next[1][i])
	}
	if changeIncreasesAccess(was[0][i], next[0][i]) {
		return true
	}
	return next[0][i].oneOf == nil && changeIncreasesAccess(was[1][i], next[1][i])
}

func changeIncreasesAccess(was, is configKey) bool {
	switch is.kind() {
	case overrides:
		return mayLoosenHints(was.value().([]HintOverride), is.value().([]HintOverride))
	case laneRules:
		return mayLoosenLanes(was.value().([]ArgumentLaneRule), is.value().([]ArgumentLaneRule))
	case toolLists:
		return mayAllowMoreTools(was.value().([]policy.ScopeTools), is.value().([]policy.ScopeTools))
	}
	return !isSameValue(was, is) && is.grants.changeIncreasesAccess(was.value(), is.value())
}

func (w *accessClamper) clampServers(was, out *Config) {
	all := out.Servers
	out.Servers, out.asWritten.Servers, out.shown.Servers = nil, nil, nil
	for _, s := range all {
		if i := indexOfServer(was.Servers, s.Name); i >= 0 {
			s = w.clampServer(was.Servers[i], s, out)
		} else if w.withholdUnlessAllowed(joinPath("mcpServers", s.Name), null, maskedServerJSON(s)) {
			continue
		}
		out.Servers = append(out.Servers, s)
		out.asWritten.Servers, out.shown.Servers = append(out.asWritten.Servers, *s.asWritten), append(out.shown.Servers, *s.shown)
	}
}

func (w *accessClamper) clampServer(was, s Server, out *Config) Server {
	written, shown := *s.asWritten, *s.shown
	s.asWritten, s.shown = &written, &shown
	w.clampKeys(joinPath("mcpServers", s.Name), resolvedWrittenShownKeys{was.keys(), was.asWritten.keys(), was.shown.keys()}, resolvedWrittenShownKeys{s.keys(), written.keys(), shown.keys()})
	if len(written.EnabledTools) > 0 && len(written.DisabledTools) > 0 { // mutually exclusive, so both await confirmation
		for _, v := range [][2]*Server{{&s, &was}, {&written, was.asWritten}, {&shown, was.shown}} {
			v[0].EnabledTools, v[0].DisabledTools = v[1].EnabledTools, v[1].DisabledTools
		}
	}
	if written.Trust == "" && s.Trust != out.defaultTrust() { // the key that determines the default awaits confirmation
		written.Trust, shown.Trust = s.Trust, s.Trust
	}
	launch := newLaunchView(written)
	launch.Protocol = s.Protocol
	fingerprint := launch.fingerprint()
	s.launch, s.launchFingerprint, s.TrySSE = &launch, &fingerprint, written.Protocol == "auto"
	return s
}

func (w *accessClamper) clampProfiles(was, out *Config) {
	all := out.Profiles
	written, shown := out.asWritten.Profiles, out.shown.Profiles
	out.Profiles, out.asWritten.Profiles, out.shown.Profiles = nil, nil, nil
	for i, p := range all {
		path := joinPath("profiles", p.Name)
		p, raw, seen := p, written[i], shown[i]
		if at := slices.IndexFunc(was.Profiles, func(q Profile) bool { return q.Name == p.Name }); at >= 0 {
			a, b, c := was.Profiles[at], was.asWritten.Profiles[at], was.shown.Profiles[at]
			w.clampKeys(path, resolvedWrittenShownKeys{a.keys(), b.keys(), c.keys()}, resolvedWrittenShownKeys{p.keys(), raw.keys(), seen.keys()})
			p.rule = p.buildScopeRule()
		} else if w.withholdUnlessAllowed(path, null, maskedProfileJSON(p)) {
			continue
		}
		out.Profiles, out.asWritten.Profiles, out.shown.Profiles = append(out.Profiles, p), append(out.asWritten.Profiles, raw), append(out.shown.Profiles, seen)
	}
}

// mayLoosenHints reports whether the second overrides may give any tool less harmful hints than the first, whatever
// its server declares. The last match wins per hint, so only two changes are safe at any position: adding the
// strictest value of a hint, and removing the least harmful value.
func mayLoosenHints(was, is []HintOverride) bool {
	before, after := toOverriddenHints(was), toOverriddenHints(is)
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && before[0] == after[0]:
			before, after = before[1:], after[1:]
		case len(after) > 0 && !after[0].mayLoosen(false):
			after = after[1:]
		case len(before) > 0 && !before[0].mayLoosen(true):
			before = before[1:]
		default:
			return true
		}
	}
	return false
}

// overriddenHint is one hint that an override sets for the tools of a pattern.
type overriddenHint struct {
	pattern, hint string
	value         any
}

func toOverriddenHints(overrides []HintOverride) (all []overriddenHint) {
	for _, o := range overrides {
		for _, k := range hintKeys(&o.Hints) {
			if !k.isDefault() {
				all = append(all, overriddenHint{o.Pattern, k.name, k.value()})
			}
		}
	}
	return all
}

// mayLoosen reports whether adding the hint, or removing it if out is set, may loosen hints.
func (s overriddenHint) mayLoosen(out bool) bool {
	for _, k := range hintKeys(new(tool.Hints)) {
		if k.name == s.hint {
			if out {
				return k.grants.changeIncreasesAccess(s.value, k.value())
			}
			return k.grants.changeIncreasesAccess(k.value(), s.value)
		}
	}
	return true
}

// mayLoosenLanes reports whether the second rules may give a call a less dangerous lane than the first. Argument
// rules replace hints, so both adding and removing a rule may loosen lanes.
func mayLoosenLanes(was, is []ArgumentLaneRule) bool {
	if len(was) != len(is) {
		return true
	}
	for i := range is {
		if was[i].Pattern != is[i].Pattern || anyKeyChangeIncreasesAccess(was[i].keys(), is[i].keys()) {
			return true
		}
	}
	return false
}

func anyKeyChangeIncreasesAccess(was, is []configKey) bool {
	for i := range is {
		if changeIncreasesAccess(was[i], is[i]) {
			return true
		}
	}
	return false
}

// mayAllowMoreTools reports whether the second lists allow a tool that the first lists do not allow. All entries that
// match a server apply.
func mayAllowMoreTools(was, is []policy.ScopeTools) bool {
	for _, a := range was {
		if !slices.ContainsFunc(is, func(b policy.ScopeTools) bool {
			return arePatternsCovered([]string{b.Server}, []string{a.Server}) && arePatternsCovered(a.Patterns, b.Patterns)
		}) {
			return true
		}
	}
	return false
}

// maskedProfileJSON returns a profile as it may be shown.
func maskedProfileJSON(p Profile) json.RawMessage {
	text, err := encodeObject(p.keys(), isNotDefault)
	if err != nil {
		return null
	}
	return text
}

// canonicalJSONWithSecrets returns a parsed configuration in canonical form, with its secrets.
func (c *Config) canonicalJSONWithSecrets() ([]byte, error) {
	written := *c.asWritten
	emptyValuesToNil(written.keys())
	written.Servers, written.Profiles = slices.Clone(written.Servers), slices.Clone(written.Profiles)
	slices.SortFunc(written.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(written.Profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	for i := range written.Servers {
		emptyValuesToNil(written.Servers[i].keys())
	}
	return encodeObject(written.keys(), isNotDefault)
}

// emptyValuesToNil makes empty and absent values equal.
func emptyValuesToNil(keys []configKey) {
	for _, k := range keys {
		if k.field == nil {
			continue
		}
		if v := k.reflectField(); (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
			v.SetZero()
		}
	}
}
