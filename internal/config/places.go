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

// Place is a part of a text: the bytes From, …, To-1.
type Place struct{ From, To int }

// SecretPlaces returns where a text of the file holds what is not to be shown, in
// order and apart from one another, none over the end of a line: what Shown masks,
// whatever looks like a credential, and what stands under keys that nobody knows.
// In comments, and in a text that cannot be parsed, where nobody can tell what a
// string is, every value counts that is not known to be none: by the tables of
// keys, or since it may be shown in before, an earlier text.
func SecretPlaces(text, before []byte) []Place {
	f := newPlaces(text)
	tree, mistake := source{f.text}.parse()
	if mistake == nil {
		f.file(tree)
		f.learn(tree)
	} else {
		f.spell(before)
	}
	f.lexical(mistake != nil)
	f.again()
	return f.sorted(len(text) - len(f.text))
}

// places gathers the places of secrets.
type places struct {
	text   []byte // without byte order mark
	found  []Place
	plain  map[string]bool // strings that may be shown wherever they stand
	values []string        // what is secret by its key
	names  map[string]bool // of servers
}

func newPlaces(text []byte) *places {
	f := &places{text: bytes.TrimPrefix(text, []byte(byteOrderMark)), names: map[string]bool{}, plain: map[string]bool{"name": true, "true": true, "false": true, "null": true}}
	for _, k := range slices.Concat(new(Config).keys(), new(Server).keys(), new(Profile).keys(), hintKeys(new(tool.Hints))) {
		name := strings.TrimPrefix(k.name, k.groupOf()+".")
		for _, word := range slices.Concat([]string{name, k.groupOf(), k.inverse}, k.aliases, k.oneOf) {
			f.plain[word] = true
		}
		for word := range k.spellings {
			f.plain[word] = true
		}
	}
	return f
}

// spell has what may be shown in an earlier text be shown, and what is secret there
// be secret.
func (f *places) spell(before []byte) {
	earlier := newPlaces(before)
	if tree, mistake := (source{earlier.text}).parse(); mistake == nil {
		earlier.file(tree)
		earlier.learn(tree)
		earlier.lexical(false)
		f.plain, f.values, f.names = earlier.plain, earlier.values, earlier.names
	}
}

// learn has every string be plain that is nowhere secret.
func (f *places) learn(tree hujson.Value) {
	secret := map[string]bool{}
	f.found = apart(f.found)
	for _, p := range f.found {
		secret[string(f.text[p.From:p.To])] = true
	}
	for v := range tree.All() {
		if l, ok := v.Value.(hujson.Literal); ok && !f.touched(v.StartOffset, v.EndOffset) && !secret[l.String()] {
			f.plain[l.String()] = true
		}
	}
}

// touched reports whether there is a secret between two bytes, of those that are
// apart.
func (f *places) touched(from, to int) bool {
	i, _ := slices.BinarySearchFunc(f.found, from, func(p Place, at int) int { return p.To - at - 1 })
	return i < len(f.found) && f.found[i].From < to
}

// apart returns places in order, those that touch as one.
func apart(places []Place) (out []Place) {
	slices.SortFunc(places, func(a, b Place) int { return a.From - b.From })
	for _, p := range places {
		if n := len(out); n > 0 && p.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}

// file looks at the whole file.
func (f *places) file(v hujson.Value) { f.object(v, new(Config).keys(), "file") }

// object looks at an object of keys; of is what foreign.txt calls it.
func (f *places) object(v hujson.Value, keys []key, of string) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		f.all(v)
		return
	}
	for _, m := range obj.Members {
		l, _ := m.Name.Value.(hujson.Literal)
		name := l.String()
		f.loose(m.Name)
		at, _ := find(keys, name)
		_, others := foreign(of, name, m.Value.Value.Kind())
		group := within(keys, name)
		switch {
		case len(group) > 0:
			f.object(m.Value, group, "")
		case others && simple(m.Value):
			f.loose(m.Value)
		case others, at < 0:
			f.all(m.Value)
		case keys[at].secret:
			f.secret(m.Value, keys[at])
		default:
			f.value(m.Value, keys[at])
		}
	}
}

// simple reports whether a value is no object, and no list with one in it.
func simple(v hujson.Value) bool {
	for one := range v.All() {
		if _, isObject := one.Value.(*hujson.Object); isObject {
			return false
		}
	}
	return true
}

// value looks at the value of a key that is not secret by itself. What is of
// another type than it should be is not known.
func (f *places) value(v hujson.Value, k key) {
	_, isObject := v.Value.(*hujson.Object)
	array, isArray := v.Value.(*hujson.Array)
	kind := v.Value.Kind()
	switch k.kind() {
	case text, duration, ignored:
		if isObject || isArray {
			f.all(v)
			return
		}
		f.loose(v)
	case list:
		switch {
		case !isArray || slices.ContainsFunc(array.Elements, func(e hujson.Value) bool { return e.Value.Kind() != '"' }):
			f.all(v)
		case k.name == "args":
			f.args(array.Elements)
		default:
			f.loose(v)
		}
	case overrides, laneRules, selections:
		f.loose(v)
	case dictionary:
		if !texts(v) {
			f.all(v)
			return
		}
		f.loose(v)
	case servers:
		f.servers(v)
	case profiles:
		obj, _ := v.Value.(*hujson.Object)
		if obj == nil {
			f.all(v)
			return
		}
		for _, m := range obj.Members {
			f.loose(m.Name)
			f.object(m.Value, new(Profile).keys(), "profile")
		}
	case toolLists:
		f.loose(v)
	default:
		if kind == '"' || isObject || isArray {
			f.all(v)
		}
	}
}

// texts reports whether a value is an object of texts.
func texts(v hujson.Value) bool {
	object, ok := v.Value.(*hujson.Object)
	return ok && !slices.ContainsFunc(object.Members, func(m hujson.ObjectMember) bool { return m.Value.Value.Kind() != '"' })
}

// servers looks at mcpServers in either form.
func (f *places) servers(v hujson.Value) {
	keys := new(Server).keys()
	switch value := v.Value.(type) {
	case *hujson.Object:
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			f.names[name.String()] = true
			f.loose(m.Name)
			f.object(m.Value, keys, "server")
		}
	case *hujson.Array:
		for _, e := range value.Elements {
			f.object(e, keys, "server")
		}
	default:
		f.all(v)
	}
}

// args looks at the arguments of a command.
func (f *places) args(elements []hujson.Value) {
	var raw []string
	for _, e := range elements {
		l, _ := e.Value.(hujson.Literal)
		raw = append(raw, l.String())
	}
	for i, shown := range redact.Args(raw) {
		f.hide(elements[i], raw[i], asURL(shown))
	}
}

// loose masks what looks like a credential in all strings of a value.
func (f *places) loose(v hujson.Value) {
	for one := range v.All() {
		l, ok := one.Value.(hujson.Literal)
		if !ok || l.Kind() != '"' {
			continue
		}
		raw := l.String()
		f.hide(*one, raw, asURL(redact.Text(raw)))
	}
}

// userinfo is that of an address whose scheme is misspelt.
var userinfo = regexp.MustCompile(`/[^/\s@]*:[^/\s@]*@`)

// asURL masks in a text what is secret in an address.
func asURL(text string) string {
	switch {
	case strings.Contains(text, "://"):
		return redact.URL(text)
	case userinfo.MatchString(text):
		return mask
	}
	return text
}

// secret masks the values of a key that is secret: references are none.
func (f *places) secret(v hujson.Value, k key) {
	for one := range leaves(v, f.loose) {
		l, _ := one.Value.(hujson.Literal)
		switch raw := l.String(); {
		case l.Kind() != '"':
			f.add(one.StartOffset, one.EndOffset)
		case k.masked(raw) != raw:
			f.add(one.StartOffset+1, one.EndOffset-1)
			f.values = append(f.values, string(l[1:len(l)-1]))
		}
	}
}

// all masks everything in a value but the names of members.
func (f *places) all(v hujson.Value) {
	for one := range leaves(v, f.loose) {
		switch l, _ := one.Value.(hujson.Literal); {
		case l.Kind() == '"' && !onlyReferences(l.String()):
			f.add(one.StartOffset+1, one.EndOffset-1)
		case l.Kind() == '0':
			f.add(one.StartOffset, one.EndOffset)
		}
	}
}

// leaves walks the literals in a value; names are passed to name.
func leaves(v hujson.Value, name func(hujson.Value)) func(yield func(hujson.Value) bool) {
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

// hide masks what shown does not show of a string. Where it is written with
// escapes, that is all of it.
func (f *places) hide(v hujson.Value, raw, shown string) {
	from, to := v.StartOffset+1, v.EndOffset-1
	if string(f.text[from:to]) != raw && raw != shown {
		f.add(from, to)
		return
	}
	for _, part := range redact.Hidden(raw, shown) {
		f.add(from+part[0], from+part[1])
	}
}

func (f *places) add(from, to int) {
	if from < to {
		f.found = append(f.found, Place{from, to})
	}
}

var (
	word   = regexp.MustCompile(`[^\s{}\[\]:,]+`)
	number = regexp.MustCompile(`^[0-9]{1,4}$`)
	// quotedValue is a string that is not the name of a member.
	quotedValue = regexp.MustCompile(`[:\[,]\s*"((?:[^"\\\n]|\\.)*)"?`)
)

// lexical looks at comments, and if the text cannot be parsed, at all of it.
func (f *places) lexical(broken bool) {
	for at := 0; at < len(f.text); {
		n, open := textedit.Extent(f.text[at:]), false
		if n < 0 { // it has no end: taken as far as the line goes
			open = true
			if n = bytes.IndexByte(f.text[at:], '\n'); n < 0 {
				n = len(f.text) - at
			}
		}
		token := f.text[at : at+n]
		switch {
		case token[0] == '/' && n > 1 && broken && !f.plain[string(token)]:
			f.add(at+2, at+n) // it may be none
		case token[0] == '/' && n > 1:
			n0 := len(f.found)
			if f.comment(at, at+n); n0 == len(f.found) {
				f.plain[string(token)] = true
			}
		case !broken:
		case token[0] == '"' && (n > 1 || open):
			end := at + n
			if !open {
				end--
			}
			if !f.plain[unquoted(token)] && !opens(f.text[at+n:]) {
				f.add(at+1, end)
				f.values = append(f.values, string(f.text[at+1:end]))
			} else {
				f.scan(at+1, end)
			}
		case bytes.IndexByte([]byte(" \t\r\n{}[]:,"), token[0]) < 0:
			n = len(word.Find(f.text[at:]))
			if i := bytes.IndexAny(f.text[at:at+n], `"/`); i > 0 {
				n = i
			}
			if n = max(n, 1); !f.plain[string(f.text[at:at+n])] && !number.Match(f.text[at:at+n]) {
				f.add(at, at+n)
			}
		}
		at += max(n, 1)
	}
}

// unquoted is what a string says that may be written wrong.
func unquoted(token []byte) string {
	if v, err := hujson.Parse(token); err == nil {
		if l, ok := v.Value.(hujson.Literal); ok {
			return l.String()
		}
	}
	return string(bytes.Trim(token, `"`))
}

// opens reports whether what follows a string has it be the name of an object or
// a list, as servers have names.
func opens(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	rest, colon := bytes.CutPrefix(rest, []byte(":"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return colon && len(rest) > 0 && (rest[0] == '{' || rest[0] == '[')
}

// comment looks at a comment: at what looks like a credential, and, since it may
// be a part of a file, at strings that are values.
func (f *places) comment(from, to int) {
	f.scan(from, to)
	for _, m := range quotedValue.FindAllSubmatchIndex(f.text[from:to], -1) {
		if !f.plain[string(f.text[from+m[2]:from+m[3]])] {
			f.add(from+m[2], from+m[3])
		}
	}
}

// scan masks what looks like a credential between two bytes, line by line and as a
// whole.
func (f *places) scan(from, to int) {
	whole := string(f.text[from:to])
	for _, part := range redact.Hidden(whole, redact.Text(whole)) {
		f.add(from+part[0], from+part[1])
	}
}

// again masks what is secret by its key where it stands a second time. What looks
// like a word or a path is no secret by itself, nor is the name of a server.
func (f *places) again() {
	byStart := map[[minSecret]byte][]string{} // one pass over the text, however many there are
	slices.Sort(f.values)
	for _, value := range slices.Compact(f.values) {
		if len(value) >= minSecret && !f.names[value] && telling.MatchString(value) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~") {
			start := [minSecret]byte([]byte(value))
			byStart[start] = append(byStart[start], value)
		}
	}
	for at := 0; len(byStart) > 0 && at+minSecret <= len(f.text); at++ {
		for _, value := range byStart[[minSecret]byte(f.text[at:])] {
			if bytes.HasPrefix(f.text[at:], []byte(value)) {
				f.add(at, at+len(value))
			}
		}
	}
}

// telling is what a value has that is no word.
var telling = regexp.MustCompile(`[^A-Za-z_./-]`)

// sorted returns the places in order and apart, each on one line, in the text that
// begins shift bytes earlier.
func (f *places) sorted(shift int) []Place {
	var lines []Place
	for _, p := range apart(f.found) {
		for from := p.From; from < p.To; {
			to := p.To
			if i := bytes.IndexAny(f.text[from:to], "\r\n"); i >= 0 {
				to = from + i
			}
			if from < to {
				lines = append(lines, Place{from + shift, to + shift})
			}
			from = to + 1
		}
	}
	return lines
}
