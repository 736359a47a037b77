package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// widenings returns what of a configuration lets more be done than another one, or leaves
// less on record. A server or a profile that only next has is one of them, as a whole.
// Both are parsed.
func widenings(was, next *Config) []Difference {
	_, found := clamp(was, next, nil)
	return found
}

// Clamp returns next, but for what widens: that is as it was. The order of servers and
// what is no key, such as a comment, play no part. Both are parsed.
func Clamp(was, next *Config) *Config {
	c, _ := clamp(was, next, nil)
	return c
}

// between returns whether the file says another thing of a key in the second, in whatever
// direction; of every key it does where there is no first.
func between(was, next *Config) func(key string) bool {
	if was == nil {
		return func(string) bool { return true }
	}
	w := clamping{differs: true}
	w.over(was, next)
	keys := keysOf(w.found)
	return func(key string) bool { return slices.Contains(keys, key) }
}

// clamp is Clamp and Widenings, but for the keys that are let through.
func clamp(was, next *Config, let func(key string) bool) (*Config, []Difference) {
	w := clamping{let: let}
	return w.over(was, next), w.found
}

// over returns next over was.
func (w *clamping) over(was, next *Config) *Config {
	out, written, shown := *next, *next.written, *next.shown
	out.written, out.shown = &written, &shown
	w.keys("", versions{was.keys(), was.written.keys(), was.shown.keys()}, versions{out.keys(), written.keys(), shown.keys()})
	w.servers(was, &out)
	w.profiles(was, &out)
	out.revision, out.basis = revisionOf(out.shown), basisOf(out.shown)
	return &out
}

// versions are the keys of one thing: as they count, as they are written, as they are
// shown.
type versions [3][]key

// clamping gathers what widens.
type clamping struct {
	let     func(key string) bool
	differs bool // whatever differs counts
	found   []Difference
}

// waits reports whether a change that widens is not let through, and notes it.
func (w *clamping) waits(name string, from, to json.RawMessage) bool {
	if w.let != nil && w.let(name) {
		return false
	}
	w.found = append(w.found, Difference{name, from, to})
	return true
}

// keys puts the former values in the place of those that widen.
func (w *clamping) keys(path string, was, next versions) {
	for i, k := range next[0] {
		if k.to == nil || k.kind() == servers || k.kind() == profiles || k.name == "name" || !w.widens(was, next, i) {
			continue
		}
		from, to := encoded(was[2][i]), encoded(next[2][i])
		if k.name == "trust" { // as decided where it is not said
			from, to = encoded(was[0][i]), encoded(k)
		}
		if w.waits(of(path, k), from, to) {
			for v := range next {
				next[v][i].field().Set(was[v][i].field())
			}
		}
	}
}

// widens reports whether the change of a key does. What is written counts, too, where it
// may hold references: what these stand for can be another thing tomorrow.
func (w *clamping) widens(was, next versions, i int) bool {
	if w.differs {
		return !same(was[0][i], next[0][i]) || !same(was[1][i], next[1][i])
	}
	if wider(was[0][i], next[0][i]) {
		return true
	}
	return next[0][i].oneOf == nil && wider(was[1][i], next[1][i])
}

func wider(was, is key) bool {
	switch is.kind() {
	case overrides:
		return hintsLoosen(was.value().([]HintOverride), is.value().([]HintOverride))
	case laneRules:
		return lanesLoosen(was.value().([]LaneRule), is.value().([]LaneRule))
	case toolLists:
		return toolsLoosen(was.value().([]policy.ScopeTools), is.value().([]policy.ScopeTools))
	}
	return !same(was, is) && is.widens.by(was.value(), is.value())
}

func (w *clamping) servers(was, out *Config) {
	all := out.Servers
	out.Servers, out.written.Servers, out.shown.Servers = nil, nil, nil
	for _, s := range all {
		if i := named(was.Servers, s.Name); i >= 0 {
			s = w.server(was.Servers[i], s, out)
		} else if w.waits(join("mcpServers", s.Name), null, shownServer(s)) {
			continue
		}
		out.Servers = append(out.Servers, s)
		out.written.Servers, out.shown.Servers = append(out.written.Servers, *s.written), append(out.shown.Servers, *s.shown)
	}
}

func (w *clamping) server(was, s Server, out *Config) Server {
	written, shown := *s.written, *s.shown
	s.written, s.shown = &written, &shown
	w.keys(join("mcpServers", s.Name), versions{was.keys(), was.written.keys(), was.shown.keys()}, versions{s.keys(), written.keys(), shown.keys()})
	if len(written.EnabledTools) > 0 && len(written.DisabledTools) > 0 { // one of them waits, so that both do
		for _, v := range [][2]*Server{{&s, &was}, {&written, was.written}, {&shown, was.shown}} {
			v[0].EnabledTools, v[0].DisabledTools = v[1].EnabledTools, v[1].DisabledTools
		}
	}
	if written.Trust == "" && s.Trust != out.othersTrust() { // what it follows from waits
		written.Trust, shown.Trust = s.Trust, s.Trust
	}
	launch := launchOf(written)
	launch.Protocol = s.Protocol
	fingerprint := launch.fingerprint()
	s.launch, s.launchFingerprint, s.TrySSE = &launch, &fingerprint, written.Protocol == "auto"
	return s
}

func (w *clamping) profiles(was, out *Config) {
	all := out.Profiles
	written, shown := out.written.Profiles, out.shown.Profiles
	out.Profiles, out.written.Profiles, out.shown.Profiles = nil, nil, nil
	for i, p := range all {
		path := join("profiles", p.Name)
		p, raw, seen := p, written[i], shown[i]
		if at := slices.IndexFunc(was.Profiles, func(q Profile) bool { return q.Name == p.Name }); at >= 0 {
			a, b, c := was.Profiles[at], was.written.Profiles[at], was.shown.Profiles[at]
			w.keys(path, versions{a.keys(), b.keys(), c.keys()}, versions{p.keys(), raw.keys(), seen.keys()})
			p.rule = p.newRule()
		} else if w.waits(path, null, shownProfile(p)) {
			continue
		}
		out.Profiles, out.written.Profiles, out.shown.Profiles = append(out.Profiles, p), append(out.written.Profiles, raw), append(out.shown.Profiles, seen)
	}
}

// hintsLoosen reports whether a tool may get more harmless hints by the second overrides
// than by the first, whatever its server says. The last that fits wins, hint by hint, so
// that two things are sure to loosen nothing, wherever they stand: a strictest saying more,
// and a most harmless one less.
func hintsLoosen(was, is []HintOverride) bool {
	before, after := sayings(was), sayings(is)
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && before[0] == after[0]:
			before, after = before[1:], after[1:]
		case len(after) > 0 && !after[0].widens(false):
			after = after[1:]
		case len(before) > 0 && !before[0].widens(true):
			before = before[1:]
		default:
			return true
		}
	}
	return false
}

// saying is one hint that an override says of the tools that a pattern fits.
type saying struct {
	pattern, hint string
	value         any
}

func sayings(overrides []HintOverride) (all []saying) {
	for _, o := range overrides {
		for _, k := range hintKeys(&o.Hints) {
			if !k.isDefault() {
				all = append(all, saying{o.Pattern, k.name, k.value()})
			}
		}
	}
	return all
}

// widens reports whether it may, when it is added or taken out.
func (s saying) widens(out bool) bool {
	for _, k := range hintKeys(new(tool.Hints)) {
		if k.name == s.hint {
			if out {
				return k.widens.by(s.value, k.value())
			}
			return k.widens.by(k.value(), s.value)
		}
	}
	return true
}

// lanesLoosen reports whether a call may count as less by the second rules than by the
// first. What an argument does counts in the place of the hints, so that a rule more may
// loosen, and one less, too.
func lanesLoosen(was, is []LaneRule) bool {
	if len(was) != len(is) {
		return true
	}
	for i := range is {
		if was[i].Pattern != is[i].Pattern || anyWider(was[i].keys(), is[i].keys()) {
			return true
		}
	}
	return false
}

func anyWider(was, is []key) bool {
	for i := range is {
		if wider(was[i], is[i]) {
			return true
		}
	}
	return false
}

// toolsLoosen reports whether the second lists let a tool through that the first do not.
// All that fit a server count.
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

// shownProfile is a profile as it may be shown.
func shownProfile(p Profile) json.RawMessage {
	text, err := encodeObject(p.keys(), func(k key) bool { return !k.isDefault() })
	if err != nil {
		return null
	}
	return text
}

// canonical is a parsed configuration as a file that says the same, with its secrets: two
// that say the same have the same.
func (c *Config) canonical() ([]byte, error) {
	written := *c.written
	tidy(written.keys())
	written.Servers, written.Profiles = slices.Clone(written.Servers), slices.Clone(written.Profiles)
	slices.SortFunc(written.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(written.Profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	for i := range written.Servers {
		tidy(written.Servers[i].keys())
	}
	return encodeObject(written.keys(), func(k key) bool { return !k.isDefault() })
}

// tidy makes no difference between what is empty and what is left out.
func tidy(keys []key) {
	for _, k := range keys {
		if k.to == nil {
			continue
		}
		if v := k.field(); (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
			v.SetZero()
		}
	}
}
