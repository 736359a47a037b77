package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
)

// decoder decodes a Config from a syntax tree and collects errors. It decodes every value twice: resolved for the
// configuration, and as written for the shown configuration.
type decoder struct {
	sourceText
	lookup    func(string) (string, bool)
	newServer Server // a server with the defaults
	mistakes  []Mistake
	more      int // number of mistakes beyond the limit
	warnings  warnings
	// serverName is the server that is being decoded, serverPath its path.
	serverName, serverPath string
	// keepReferences leaves unresolvable references unchanged.
	keepReferences bool
	// inDisabledServer is set inside a disabled server, where unset variables are
	// harmless.
	inDisabledServer bool
	// inServer is set inside a server. unsetVariables are the server's unset variables, which prevent only that
	// server from starting.
	inServer       bool
	unsetVariables []string
}

func newDecoder(src sourceText, lookup func(string) (string, bool)) *decoder {
	d := &decoder{sourceText: src, lookup: lookup}
	setDefaults(d.newServer.keys())
	return d
}

func (d *decoder) addMistake(offset int, path, message, hint string) {
	if d.countIfBeyondMistakeLimit() {
		return
	}
	d.mistakes = append(d.mistakes, d.newMistake(offset, path, message, hint))
}

// addGlobalMistake reports a mistake that has no position.
func (d *decoder) addGlobalMistake(path, message, hint string) {
	d.mistakes = append(d.mistakes, Mistake{Path: path, Message: message, Hint: hint})
}

// countIfBeyondMistakeLimit reports whether the limit of reported mistakes is reached, and counts a mistake beyond
// it. Computing positions and suggestions for each mistake would take long in a file that is not a configuration.
func (d *decoder) countIfBeyondMistakeLimit() bool {
	if len(d.mistakes) < maxMistakes {
		return false
	}
	d.more++
	return true
}

// objectMembers are the members of an object, by canonical key.
type objectMembers map[string]hujson.ObjectMember

// decodeObject decodes v into the fields of keys (resolved) and of shown (as it may be shown).
func (d *decoder) decodeObject(v hujson.Value, path string, keys, shown []configKey) objectMembers {
	members := objectMembers{}
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.reportWrongType(v, path, "an object")
		return members
	}
	for m, name := range d.eachUniqueMember(obj, path) {
		at := joinPath(path, name)
		if group := keysInGroup(keys, name); len(group) > 0 && isWrittenAlone(group, m.Value) {
			members[name] = m // its keys have their defaults
			continue
		} else if len(group) > 0 {
			if _, isText := m.Value.Value.(hujson.Literal); isText && name == "sandbox" {
				d.addMistake(m.Value.StartOffset, at, `sandbox must be "off" or an object`, `write {"mode": "on"}`)
				continue
			}
			d.decodeObject(m.Value, at, group, keysInGroup(shown, name))
			members[name] = m
			continue
		}
		i, inverse := findKeyOfMember(keys, m, name)
		if d.warnOtherClientKey(m, path, at, name) {
			continue
		}
		if i < 0 {
			d.reportUnknownKey(m, at, name, keyNamesToSuggest(keys))
			continue
		}
		k := keys[i]
		if before, twice := members[k.name]; twice {
			first, _ := before.Name.Value.(hujson.Literal)
			d.addMistake(m.Name.StartOffset, at, fmt.Sprintf("%s is the same as %s", quoteClipped(name), quoteClipped(first.String())), "keep one of them")
			continue
		}
		members[k.name] = m
		value := m.Value
		if inverse {
			value = invertBool(value)
		}
		if resolved, raw := d.decodeValue(value, at, k); resolved != nil {
			k.setValue(resolved)
			shown[i].setValue(raw)
		}
	}
	return members
}

// isWrittenAlone reports whether a value is that of a key instead of an object with the group's keys.
func isWrittenAlone(group []configKey, v hujson.Value) bool {
	l, ok := v.Value.(hujson.Literal)
	return ok && l.Kind() == '"' && slices.ContainsFunc(group, func(k configKey) bool { return k.alone != "" && k.alone == l.String() })
}

// eachUniqueMember iterates over the members of an object. It reports a duplicate name as a mistake and skips that
// member.
func (d *decoder) eachUniqueMember(obj *hujson.Object, path string) func(yield func(hujson.ObjectMember, string) bool) {
	return func(yield func(hujson.ObjectMember, string) bool) {
		seen := map[string]int{}
		for _, m := range obj.Members {
			name, ok := d.decodeStringLiteral(m.Name, path)
			if !ok {
				continue
			}
			first, twice := seen[name]
			if twice && d.countIfBeyondMistakeLimit() {
				continue
			}
			if twice {
				line, _ := d.position(first)
				d.addMistake(m.Name.StartOffset, joinPath(path, name), fmt.Sprintf("%s is a duplicate key", quoteClipped(name)),
					fmt.Sprintf("the first one is on line %d", line))
				continue
			}
			seen[name] = m.Name.StartOffset
			if !yield(m, name) {
				return
			}
		}
	}
}

// findKey returns the index of the key with that name or alias, -1 if there is none. inverse reports whether the name
// has the opposite meaning.
func findKey(keys []configKey, name string) (at int, inverse bool) {
	at = slices.IndexFunc(keys, func(k configKey) bool {
		return k.name == name || slices.Contains(k.aliases, name) || k.inverse == name && name != ""
	})
	return at, at >= 0 && keys[at].inverse == name
}

// findKeyOfMember is findKey for a member with its value. A list with the name tools is enabled_tools, as other clients
// write it.
func findKeyOfMember(keys []configKey, m hujson.ObjectMember, name string) (at int, inverse bool) {
	at, inverse = findKey(keys, name)
	if at >= 0 && keys[at].kind() == list && m.Value.Value.Kind() != '[' {
		if exact := slices.IndexFunc(keys, func(k configKey) bool { return k.name == name }); exact >= 0 {
			return exact, false
		}
	}
	return at, inverse
}

func invertBool(v hujson.Value) hujson.Value {
	if l, ok := v.Value.(hujson.Literal); ok && (l.Kind() == 't' || l.Kind() == 'f') {
		v.Value = hujson.Bool(!l.Bool())
	}
	return v
}

// reportUnknownKey reports an unknown key, with the nearest known one.
func (d *decoder) reportUnknownKey(m hujson.ObjectMember, path, name string, known []string) {
	if d.countIfBeyondMistakeLimit() {
		return
	}
	hint := keyLocationHint(name)
	if near := search.ClosestName(name, known); near != "" && hint == "" {
		hint = "did you mean " + quoteClipped(near) + "?"
	}
	d.addMistake(m.Name.StartOffset, path, "unknown key "+quoteClipped(name), hint)
}

// keyLocationHint returns a hint that names the other object in which a key is valid; "" if there is none.
func keyLocationHint(name string) string {
	if at, _ := findKey(new(Server).keys(), name); at >= 0 {
		return "it belongs to a server in mcpServers"
	}
	for _, k := range new(Config).keys() {
		switch {
		case k.name == name:
			return "it belongs at the top level of the file"
		case strings.HasSuffix(k.name, "."+name):
			return "it belongs to " + quoteClipped(k.groupName())
		}
	}
	return ""
}

// keyNamesToSuggest returns the names for suggestions.
func keyNamesToSuggest(keys []configKey) []string {
	var out []string
	for _, k := range keys {
		name := k.name
		if group := k.groupName(); group != "" {
			name = group
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// decodeValue decodes one value: resolved, and as written. For an invalid value it keeps the default and returns nil.
func (d *decoder) decodeValue(v hujson.Value, path string, k configKey) (resolved, raw any) {
	switch k.kind() {
	case text:
		return d.decodeTextValue(v, path, k)
	case boolean, tristate:
		resolved = d.decodeBool(v, path, k)
	case integer:
		resolved = d.decodeInt(v, path, k)
	case duration:
		resolved = d.decodeDuration(v, path, k)
	case list:
		return d.decodeList(v, path, k)
	case dictionary:
		return d.decodeStringMap(v, path, k)
	case overrides:
		resolved = d.decodeHintOverrides(v, path)
	case laneRules:
		return d.decodeArgumentLaneRules(v, path)
	case selections:
		resolved = d.decodeResultSelections(v, path)
	case webhooks:
		return d.decodeWebhooks(v, path)
	case issuers:
		return decodeObjects(d, v, path, "issuer", maxIssuers, (*OIDCIssuer).keys, "issuer", `{"issuer": "https://login.example.com"}`)
	case userRules:
		return decodeObjects(d, v, path, "rule", maxUserRules, (*UserRule).keys, "", "")
	case toolSettings:
		return d.decodeToolSettings(v, path)
	case servers:
		return d.decodeServers(v, path)
	case profiles:
		return d.decodeProfiles(v, path)
	case toolLists:
		return d.decodeProfileTools(v, path)
	}
	return resolved, resolved
}

// decodeStringLiteral decodes a JSON string.
func (d *decoder) decodeStringLiteral(v hujson.Value, path string) (string, bool) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		d.reportWrongType(v, path, "a string")
		return "", false
	}
	s := l.String()
	switch {
	case strings.ContainsRune(s, 0):
		d.addMistake(v.StartOffset, path, "the string contains a NUL character", "")
		return "", false
	case strings.ContainsRune(s, '\uFFFD') && !strings.Contains(strings.ToLower(string(l)), `\ufffd`) && !strings.ContainsRune(string(l), '\uFFFD'):
		d.addMistake(v.StartOffset, path, "the string contains half of a surrogate pair", "")
		return "", false
	}
	return s, true
}

// expandString decodes a string of a key and resolves its references.
func (d *decoder) expandString(v hujson.Value, path string, k configKey) (resolved, raw string, ok bool) {
	raw, ok = d.decodeStringLiteral(v, path)
	if !ok {
		return "", "", false
	}
	e := expandReferences(raw, d.lookup)
	switch {
	case d.inDisabledServer:
	case d.inServer:
		d.addUnsetVariables(v, path, e.missing)
	default:
		for _, m := range e.missing {
			e.mistakes = append(e.mistakes, m.toMistake())
		}
	}
	if !k.secrets && hasSecretReference(e.text) {
		e.addMistake("${keyring:NAME} cannot be used in "+lastPathPart(path), "secrets are only for the keys that start or reach a server, for its login and for webhooks; use ${env:NAME}")
	}
	d.warnForeignReferences(v, path, raw)
	for _, m := range e.mistakes {
		d.addMistake(v.StartOffset, path, m.Message, m.Hint)
	}
	return e.text, raw, len(e.mistakes) == 0
}

// maxUnsetVariables limits the number of unset variables that are reported for one server.
const maxUnsetVariables = 20

// addUnsetVariables records a server's unset variables, with a warning for each.
func (d *decoder) addUnsetVariables(v hujson.Value, path string, missing []unsetVariable) {
	for _, variable := range missing {
		if len(d.unsetVariables) < maxUnsetVariables && !slices.Contains(d.unsetVariables, string(variable)) {
			d.unsetVariables = append(d.unsetVariables, string(variable))
		}
		m := variable.toMistake()
		d.addWarning(v.StartOffset, path, m.Message, "the server cannot start without it: "+variable.remedyHint())
	}
}

// hasUnresolvedReference reports whether the string contains an unresolved reference, because the server is disabled,
// the variable is unset or the reference is to a secret.
func (d *decoder) hasUnresolvedReference(s string) bool {
	return (d.inDisabledServer || d.inServer) && referencePattern.MatchString(s) || hasSecretReference(s)
}

func (d *decoder) decodeTextValue(v hujson.Value, path string, k configKey) (any, any) {
	resolved, raw, ok := d.expandString(v, path, k)
	if !ok {
		return nil, nil
	}
	if meaning, ok := k.spellings[resolved]; ok {
		resolved = meaning
	}
	if k.oneOf != nil {
		if d.hasUnresolvedReference(resolved) {
			return nil, nil
		}
		if !slices.Contains(k.oneOf, resolved) {
			d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be %s, not %s", lastPathPart(path), joinAlternatives(k.oneOf), quoteClipped(raw)), "")
			return nil, nil
		}
		raw = resolved
	}
	if !d.passesCheck(v, path, k, resolved) {
		return nil, nil
	}
	return resolved, raw
}

// passesCheck runs the check of a key on a resolved string.
func (d *decoder) passesCheck(v hujson.Value, path string, k configKey, resolved string) bool {
	if k.check == nil || d.hasUnresolvedReference(resolved) {
		return true
	}
	return d.reportCheckError(v.StartOffset, path, k.check(resolved))
}

// reportCheckError reports the error of a check.
func (d *decoder) reportCheckError(offset int, path string, err error) bool {
	if err != nil {
		message, hint, _ := strings.Cut(err.Error(), "; ")
		d.addMistake(offset, path, message, hint)
	}
	return err == nil
}

func (d *decoder) decodeBool(v hujson.Value, path string, k configKey) any {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != 't' && l.Kind() != 'f' {
		d.reportWrongType(v, path, "true or false")
		return nil
	}
	if k.kind() == tristate {
		return tool.ToTriBool(l.Bool())
	}
	return l.Bool()
}

func (d *decoder) decodeInt(v hujson.Value, path string, k configKey) any {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '0' {
		d.reportWrongType(v, path, "a whole number")
		return nil
	}
	n, err := strconv.ParseInt(string(l), 10, 64)
	if err != nil || n < k.min || n > k.max {
		d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be a whole number from %d to %d, not %s", lastPathPart(path), k.min, k.max, clipText(string(l))), "")
		return nil
	}
	return n
}

func (d *decoder) decodeDuration(v hujson.Value, path string, k configKey) any {
	const want = `a duration such as "30s" or "2m"`
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '0' {
		if string(l) == "0" && k.shortest == 0 { // 0 needs no unit
			return time.Duration(0)
		}
		d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be %s, not a number", lastPathPart(path), want), fmt.Sprintf("write %q for seconds", clipText(string(l))+"s"))
		return nil
	}
	resolved, raw, ok := d.expandString(v, path, k)
	if !ok || d.hasUnresolvedReference(resolved) {
		return nil
	}
	n, err := time.ParseDuration(resolved)
	switch {
	case err != nil:
		d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be %s, not %s", lastPathPart(path), want, quoteClipped(raw)), "the units are ms, s, m, h")
		return nil
	case n < k.shortest || n > k.longest:
		d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be from %s to %s, not %s", lastPathPart(path), formatDuration(k.shortest), formatDuration(k.longest), quoteClipped(raw)), "")
		return nil
	}
	return n
}

func (d *decoder) decodeList(v hujson.Value, path string, k configKey) (any, any) {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		d.reportWrongType(v, path, "a list of strings")
		return nil, nil
	}
	resolved, raw := []string{}, []string{}
	for i, e := range array.Elements {
		at := fmt.Sprintf("%s[%d]", path, i)
		r, w, ok := d.expandString(e, at, k)
		if ok && d.passesCheck(e, at, k, r) {
			resolved, raw = append(resolved, r), append(raw, w)
		}
	}
	return resolved, raw
}

func (d *decoder) decodeStringMap(v hujson.Value, path string, k configKey) (any, any) {
	resolved, raw, taken := map[string]string{}, map[string]string{}, map[string]bool{}
	for m, n := range d.eachEntry(v, path, "an object of strings", k.checkName) {
		at := joinPath(path, n)
		if k.folded && taken[strings.ToLower(n)] {
			d.addMistake(m.Name.StartOffset, at, quoteClipped(n)+" is a duplicate name", "names are not case-sensitive")
			continue
		}
		taken[strings.ToLower(n)] = true
		r, w, ok := d.expandString(m.Value, at, k)
		if ok && d.passesCheck(m.Value, at, k, r) {
			resolved[n], raw[n] = r, w
		}
	}
	return resolved, raw
}

// eachEntry iterates over the entries of an object whose names the user chooses, in file order. It reports a value that is
// not an object, and skips names that check rejects.
func (d *decoder) eachEntry(v hujson.Value, path, want string, check func(name string) error) func(yield func(m hujson.ObjectMember, name string) bool) {
	return func(yield func(hujson.ObjectMember, string) bool) {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			d.reportWrongType(v, path, want)
			return
		}
		for m, name := range d.eachUniqueMember(obj, path) {
			if d.reportCheckError(m.Name.StartOffset, joinPath(path, name), check(name)) && !yield(m, name) {
				return
			}
		}
	}
}

// decodeHintOverrides decodes hint_overrides.
func (d *decoder) decodeHintOverrides(v hujson.Value, path string) any {
	out := []HintOverride{}
	for m, pattern := range d.eachEntry(v, path, "an object (tool name or pattern → hints)", checkPattern) {
		o := HintOverride{Pattern: pattern}
		d.decodeObject(m.Value, joinPath(path, pattern), o.keys(), o.keys())
		out = append(out, o)
	}
	return out
}

// reportWrongType reports a value of the wrong type.
func (d *decoder) reportWrongType(v hujson.Value, path, want string) {
	got, hint := "null", "remove the key to use the default"
	if v.Value.Kind() != 'n' {
		got, hint = map[hujson.Kind]string{'t': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "a list"}[v.Value.Kind()], ""
	}
	what := lastPathPart(path)
	switch {
	case path == "":
		what = "the file"
	case what == "command" && v.Value.Kind() == '[':
		hint = "write the program here, and the rest of the list in args"
	}
	d.addMistake(v.StartOffset, path, fmt.Sprintf("%s must be %s, not %s", what, want, got), hint)
}
