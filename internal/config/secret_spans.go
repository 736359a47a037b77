package config

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/store/redact"
)

// Span is a part of a text: the bytes from From to To-1.
type Span struct{ From, To int }

// FindSecretSpans returns the spans of a configuration text that must not be shown, in order, not overlapping, each
// on one line. They are the values that Masked masks, text that looks like a credential, and values of unknown keys.
// In comments, and in a text that cannot be parsed, every value is secret unless it is known to be public, by the
// tables of keys or because it is public in the earlier text before.
func FindSecretSpans(text, before []byte) []Span {
	f := newSecretFinder(text)
	tree, mistake := sourceText{f.text}.parseTree()
	if mistake == nil {
		f.scanFile(tree)
		f.collectPublic(tree)
	} else {
		f.useEarlierText(before)
	}
	f.scanCommentsAndBrokenText(mistake != nil)
	f.addRepeatedSecretSpans()
	return f.sortedSpans(len(text) - len(f.text))
}

// secretFinder collects the spans of secrets.
type secretFinder struct {
	text          []byte // without byte order mark
	found         []Span
	publicStrings map[string]bool // strings that may be shown anywhere
	secretValues  []string        // values of secret keys
	serverNames   map[string]bool // names of servers
}

func newSecretFinder(text []byte) *secretFinder {
	f := &secretFinder{text: bytes.TrimPrefix(text, []byte(byteOrderMark)), serverNames: map[string]bool{}, publicStrings: map[string]bool{"name": true, "true": true, "false": true, "null": true}}
	for _, k := range slices.Concat(new(Config).keys(), new(Server).keys(), new(Profile).keys(), new(Webhook).keys(), new(OIDCIssuer).keys(), new(UserRule).keys(), new(ToolSettings).keys(), hintKeys(new(tool.Hints))) {
		name := strings.TrimPrefix(k.name, k.groupName()+".")
		for _, word := range slices.Concat([]string{name, k.groupName(), k.inverse}, k.aliases, k.oneOf) {
			f.publicStrings[word] = true
		}
		for word := range k.spellings {
			f.publicStrings[word] = true
		}
	}
	return f
}

// useEarlierText adds the public strings and secrets of an earlier text.
func (f *secretFinder) useEarlierText(before []byte) {
	earlier := newSecretFinder(before)
	if tree, mistake := (sourceText{earlier.text}).parseTree(); mistake == nil {
		earlier.scanFile(tree)
		earlier.collectPublic(tree)
		earlier.scanCommentsAndBrokenText(false)
		f.publicStrings, f.secretValues, f.serverNames = earlier.publicStrings, earlier.secretValues, earlier.serverNames
	}
}

// collectPublic collects every string that is a secret nowhere in the file as public.
func (f *secretFinder) collectPublic(tree hujson.Value) {
	secret := map[string]bool{}
	f.found = mergeSpans(f.found)
	for _, p := range f.found {
		secret[string(f.text[p.From:p.To])] = true
	}
	for v := range tree.All() {
		if l, ok := v.Value.(hujson.Literal); ok && !f.overlaps(v.StartOffset, v.EndOffset) && !secret[l.String()] {
			f.publicStrings[l.String()] = true
		}
	}
}

// overlaps reports whether a secret span overlaps with these bytes. The spans must be merged.
func (f *secretFinder) overlaps(from, to int) bool {
	i, _ := slices.BinarySearchFunc(f.found, from, func(p Span, at int) int { return p.To - at - 1 })
	return i < len(f.found) && f.found[i].From < to
}

// mergeSpans returns spans in order, adjacent ones merged.
func mergeSpans(places []Span) (out []Span) {
	slices.SortFunc(places, func(a, b Span) int { return a.From - b.From })
	for _, p := range places {
		if n := len(out); n > 0 && p.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}

// scanFile scans the whole file.
func (f *secretFinder) scanFile(v hujson.Value) { f.scanObject(v, new(Config).keys(), "file") }

// scanObject scans an object with these keys. of is the name of the object in other_clients.txt.
func (f *secretFinder) scanObject(v hujson.Value, keys []configKey, of string) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		f.addAllValueSpans(v)
		return
	}
	for _, m := range obj.Members {
		l, _ := m.Name.Value.(hujson.Literal)
		name := l.String()
		f.addCredentialSpans(m.Name)
		at, _ := findKeyOfMember(keys, m, name)
		_, others := otherClientKeyAdvice(of, name, m.Value.Value.Kind())
		group := keysInGroup(keys, name)
		switch {
		case len(group) > 0:
			f.scanObject(m.Value, group, "")
		case others && containsNoObject(m.Value):
			f.addCredentialSpans(m.Value)
		case others, at < 0:
			f.addAllValueSpans(m.Value)
		case keys[at].secret:
			f.addSecretKeySpans(m.Value, keys[at])
		default:
			f.scanValue(m.Value, keys[at])
		}
	}
}

// containsNoObject reports whether a value is neither an object nor a list with an object.
func containsNoObject(v hujson.Value) bool {
	for one := range v.All() {
		if _, isObject := one.Value.(*hujson.Object); isObject {
			return false
		}
	}
	return true
}

// scanValue scans the value of a key that is not secret itself. It treats a value of the wrong type as unknown.
func (f *secretFinder) scanValue(v hujson.Value, k configKey) {
	_, isObject := v.Value.(*hujson.Object)
	array, isArray := v.Value.(*hujson.Array)
	kind := v.Value.Kind()
	switch k.kind() {
	case text, duration, ignored:
		if isObject || isArray {
			f.addAllValueSpans(v)
			return
		}
		f.addCredentialSpans(v)
	case list:
		switch {
		case !isArray || slices.ContainsFunc(array.Elements, func(e hujson.Value) bool { return e.Value.Kind() != '"' }):
			f.addAllValueSpans(v)
		case k.name == "args":
			f.scanArgs(array.Elements)
		default:
			f.addCredentialSpans(v)
		}
	case overrides, laneRules, selections, toolSettings, toolLists:
		f.addCredentialSpans(v)
	case dictionary:
		if !isStringMap(v) {
			f.addAllValueSpans(v)
			return
		}
		f.addCredentialSpans(v)
	case servers:
		f.scanEntries(v, new(Server).keys(), "server")
	case webhooks:
		f.scanEntries(v, new(Webhook).keys(), "webhook")
	case issuers:
		f.scanEntries(v, new(OIDCIssuer).keys(), "issuer")
	case userRules:
		f.scanEntries(v, new(UserRule).keys(), "rule")
	case profiles:
		f.scanEntries(v, new(Profile).keys(), "profile")
	default:
		if kind == '"' || isObject || isArray {
			f.addAllValueSpans(v)
		}
	}
}

// isStringMap reports whether a value is an object of strings.
func isStringMap(v hujson.Value) bool {
	object, ok := v.Value.(*hujson.Object)
	return ok && !slices.ContainsFunc(object.Members, func(m hujson.ObjectMember) bool { return m.Value.Value.Kind() != '"' })
}

// scanEntries scans an object of entries by name, or a list of entries. of is their name in other_clients.txt.
func (f *secretFinder) scanEntries(v hujson.Value, keys []configKey, of string) {
	switch value := v.Value.(type) {
	case *hujson.Object:
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			f.serverNames[name.String()] = f.serverNames[name.String()] || of == "server"
			f.addCredentialSpans(m.Name)
			f.scanObject(m.Value, keys, of)
		}
	case *hujson.Array:
		for _, e := range value.Elements {
			f.scanObject(e, keys, of)
		}
	default:
		f.addAllValueSpans(v)
	}
}

// scanArgs scans the arguments of a command.
func (f *secretFinder) scanArgs(elements []hujson.Value) {
	var raw []string
	for _, e := range elements {
		l, _ := e.Value.(hujson.Literal)
		raw = append(raw, l.String())
	}
	for i, shown := range redact.Args(raw) {
		f.addMaskedPartSpans(elements[i], raw[i], maskURLSecrets(shown))
	}
}

// addCredentialSpans adds the spans of text that looks like a credential in all strings of a value. These values are
// not masked otherwise.
func (f *secretFinder) addCredentialSpans(v hujson.Value) {
	for one := range v.All() {
		l, ok := one.Value.(hujson.Literal)
		if !ok || l.Kind() != '"' {
			continue
		}
		raw := l.String()
		f.addMaskedPartSpans(*one, raw, maskURLSecrets(redact.Text(raw)))
	}
}

// userinfo matches credentials in a URL with an invalid scheme.
var userinfo = regexp.MustCompile(`/[^/\s@]*:[^/\s@]*@`)

// maskURLSecrets masks the secrets in a URL.
func maskURLSecrets(text string) string {
	switch {
	case strings.Contains(text, "://"):
		return redact.URL(text)
	case userinfo.MatchString(text):
		return mask
	}
	return text
}

// addSecretKeySpans adds the spans of the values of a secret key, except references.
func (f *secretFinder) addSecretKeySpans(v hujson.Value, k configKey) {
	for one := range eachValueLiteral(v, f.addCredentialSpans) {
		l, _ := one.Value.(hujson.Literal)
		switch raw := l.String(); {
		case l.Kind() != '"':
			f.addSpan(one.StartOffset, one.EndOffset)
		case k.maskValue(raw) != raw:
			f.addSpan(one.StartOffset+1, one.EndOffset-1)
			f.secretValues = append(f.secretValues, string(l[1:len(l)-1]))
		}
	}
}

// addAllValueSpans adds the spans of everything in a value except the names of members.
func (f *secretFinder) addAllValueSpans(v hujson.Value) {
	for one := range eachValueLiteral(v, f.addCredentialSpans) {
		switch l, _ := one.Value.(hujson.Literal); {
		case l.Kind() == '"' && !hasOnlyReferences(l.String()):
			f.addSpan(one.StartOffset+1, one.EndOffset-1)
		case l.Kind() == '0':
			f.addSpan(one.StartOffset, one.EndOffset)
		}
	}
}

// eachValueLiteral iterates over the literals in a value, and passes the names of members to name.
func eachValueLiteral(v hujson.Value, name func(hujson.Value)) func(yield func(hujson.Value) bool) {
	return func(yield func(hujson.Value) bool) {
		names := map[int]bool{}
		for one := range v.All() {
			if obj, ok := one.Value.(*hujson.Object); ok {
				for _, m := range obj.Members {
					names[m.Name.StartOffset] = true
					name(m.Name)
				}
			}
			if _, ok := one.Value.(hujson.Literal); ok && !names[one.StartOffset] && !yield(*one) {
				return
			}
		}
	}
}

// addMaskedPartSpans adds the spans of the parts of a string that shown does not contain. If the string is written
// with escapes, it adds the whole string.
func (f *secretFinder) addMaskedPartSpans(v hujson.Value, raw, shown string) {
	from, to := v.StartOffset+1, v.EndOffset-1
	if string(f.text[from:to]) != raw && raw != shown {
		f.addSpan(from, to)
		return
	}
	for _, part := range redact.MaskedRanges(raw, shown) {
		f.addSpan(from+part[0], from+part[1])
	}
}

func (f *secretFinder) addSpan(from, to int) {
	if from < to {
		f.found = append(f.found, Span{from, to})
	}
}

var (
	word   = regexp.MustCompile(`[^\s{}\[\]:,]+`)
	number = regexp.MustCompile(`^[0-9]{1,4}$`)
	// quotedValue matches a string that is not a member name.
	quotedValue = regexp.MustCompile(`[:\[,]\s*"((?:[^"\\\n]|\\.)*)"?`)
)

// scanCommentsAndBrokenText scans comments and, if the text cannot be parsed, all of it.
func (f *secretFinder) scanCommentsAndBrokenText(broken bool) {
	for at := 0; at < len(f.text); {
		n, open := textedit.TokenLength(f.text[at:]), false
		if n < 0 { // unterminated: up to the end of the line
			open = true
			if n = bytes.IndexByte(f.text[at:], '\n'); n < 0 {
				n = len(f.text) - at
			}
		}
		token := f.text[at : at+n]
		switch {
		case token[0] == '/' && n > 1 && broken && !f.publicStrings[string(token)]:
			f.addSpan(at+2, at+n) // the text may not be a comment
		case token[0] == '/' && n > 1:
			n0 := len(f.found)
			if f.scanComment(at, at+n); n0 == len(f.found) {
				f.publicStrings[string(token)] = true
			}
		case !broken:
		case token[0] == '"' && (n > 1 || open):
			end := at + n
			if !open {
				end--
			}
			if !f.publicStrings[unquoteLenient(token)] && !isContainerKey(f.text[at+n:]) {
				f.addSpan(at+1, end)
				f.secretValues = append(f.secretValues, string(f.text[at+1:end]))
			} else {
				f.addCredentialSpansInRange(at+1, end)
			}
		case bytes.IndexByte([]byte(" \t\r\n{}[]:,"), token[0]) < 0:
			n = len(word.Find(f.text[at:]))
			if i := bytes.IndexAny(f.text[at:at+n], `"/`); i > 0 {
				n = i
			}
			if n = max(n, 1); !f.publicStrings[string(f.text[at:at+n])] && !number.Match(f.text[at:at+n]) {
				f.addSpan(at, at+n)
			}
		}
		at += max(n, 1)
	}
}

// unquoteLenient decodes a string that may be malformed.
func unquoteLenient(token []byte) string {
	if v, err := hujson.Parse(token); err == nil {
		if l, ok := v.Value.(hujson.Literal); ok {
			return l.String()
		}
	}
	return string(bytes.Trim(token, `"`))
}

// isContainerKey reports whether an object or list follows a string, as after a server name.
func isContainerKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	rest, colon := bytes.CutPrefix(rest, []byte(":"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return colon && len(rest) > 0 && (rest[0] == '{' || rest[0] == '[')
}

// scanComment scans a comment for credentials and, because it may be commented-out
// configuration, for string values.
func (f *secretFinder) scanComment(from, to int) {
	f.addCredentialSpansInRange(from, to)
	for _, m := range quotedValue.FindAllSubmatchIndex(f.text[from:to], -1) {
		if !f.publicStrings[string(f.text[from+m[2]:from+m[3]])] {
			f.addSpan(from+m[2], from+m[3])
		}
	}
}

// addCredentialSpansInRange adds the spans of text that looks like a credential in a range of the whole text.
func (f *secretFinder) addCredentialSpansInRange(from, to int) {
	whole := string(f.text[from:to])
	for _, part := range redact.MaskedRanges(whole, redact.Text(whole)) {
		f.addSpan(from+part[0], from+part[1])
	}
}

// addRepeatedSecretSpans adds the spans of further occurrences of secret values, except words, paths and server
// names.
func (f *secretFinder) addRepeatedSecretSpans() {
	byStart := map[[minSecret]byte][]string{} // one pass over the text for all values
	slices.Sort(f.secretValues)
	for _, value := range slices.Compact(f.secretValues) {
		if len(value) >= minSecret && !f.serverNames[value] && nonWordCharacter.MatchString(value) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~") {
			start := [minSecret]byte([]byte(value))
			byStart[start] = append(byStart[start], value)
		}
	}
	for at := 0; len(byStart) > 0 && at+minSecret <= len(f.text); at++ {
		for _, value := range byStart[[minSecret]byte(f.text[at:])] {
			if bytes.HasPrefix(f.text[at:], []byte(value)) {
				f.addSpan(at, at+len(value))
			}
		}
	}
}

// nonWordCharacter matches characters that words and paths do not have.
var nonWordCharacter = regexp.MustCompile(`[^A-Za-z_./-]`)

// sortedSpans returns the spans in order, merged, each on one line, shifted by shift bytes.
func (f *secretFinder) sortedSpans(shift int) []Span {
	var lines []Span
	for _, p := range mergeSpans(f.found) {
		for from := p.From; from < p.To; {
			to := p.To
			if i := bytes.IndexAny(f.text[from:to], "\r\n"); i >= 0 {
				to = from + i
			}
			if from < to {
				lines = append(lines, Span{from + shift, to + shift})
			}
			from = to + 1
		}
	}
	return lines
}
