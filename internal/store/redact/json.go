package redact

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// A jsonFinder walks over the strings of one JSON text.
type jsonFinder struct {
	*finder
	raw   []byte
	depth int
	// expect is the kind of the next string where the one before said what it
	// is: a flag in a list of arguments, the name beside a value.
	expect   string
	expectAt int // where that string has to begin
	joinedTo int // strings that begin before here are pieces of one that was masked
}

// json finds credentials in the strings of a JSON text. Everything else is left
// alone. A text that is not JSON does no harm: what is between quotes is looked
// at.
func (f *finder) json(raw []byte, depth int) {
	j := jsonFinder{finder: f, raw: raw, depth: depth}
	for i := 0; ; {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return
		}
		i = j.atString(i + n + 1)
	}
}

// atString looks at the string whose content begins at from, and returns the
// place to go on from.
func (j *jsonFinder) atString(from int) int {
	to := stringEnd(j.raw, from)
	next := skipSpace(j.raw, min(to+1, len(j.raw)))
	if next < len(j.raw) && j.raw[next] == ':' {
		return j.atMember(from, to, skipSpace(j.raw, next+1))
	}
	j.atValue(from, to, next)
	return next
}

// atValue looks at a string that is a value and not that of a telling name.
func (j *jsonFinder) atValue(from, to, next int) {
	kind := ""
	if j.expect != "" && j.expectAt == from {
		kind = j.expect
	}
	j.expect = ""
	if kind != "" {
		j.whole(from, to, kind)
		return
	}
	j.within(from, to)
	switch {
	case to-from > 2 && j.raw[from] == '-': // "--api-key", "…"
		j.announce(j.raw[from:to], next)
	case to-from == 2 && j.raw[from] == '-': // "login", "-p", "…"
		list := max(0, from-4*maxName)
		list += max(0, bytes.LastIndexByte(j.raw[list:from], '['))
		if afterFlag(j.raw[list:], from-list) > 0 {
			j.announce([]byte("password"), next)
		}
	}
}

// announce notes that a name may be that of the string behind the comma that
// stands at next.
func (j *jsonFinder) announce(name []byte, next int) {
	if next >= len(j.raw) || j.raw[next] != ',' {
		return
	}
	if kind, how := classify(name); how == strong {
		if v := skipSpace(j.raw, next+1); v < len(j.raw) && j.raw[v] == '"' {
			j.expect, j.expectAt = kind, v+1
		}
	}
}

// atMember looks at the member with the name at from to to, whose value begins
// at v.
func (j *jsonFinder) atMember(from, to, v int) int {
	j.within(from, to) // a map can have secrets for keys
	var scratch [maxName * 2]byte
	name := unescape(scratch[:0], j.raw[from:to])
	if v >= len(j.raw) {
		return len(j.raw)
	}
	kind, how := classify(name)
	switch {
	case j.raw[v] == '[' && how == strong:
		return j.list(v, kind)
	case j.raw[v] != '"':
		return v
	}
	valueTo := stringEnd(j.raw, v+1)
	next := skipSpace(j.raw, min(valueTo+1, len(j.raw)))
	paired := j.expect != "" && j.expectAt == from && isValue(name)
	switch {
	case paired:
		j.whole(v+1, valueTo, j.expect)
	case how == strong, how == weak && j.random(v+1, valueTo):
		j.whole(v+1, valueTo, kind)
	default:
		j.within(v+1, valueTo)
	}
	j.expect = ""
	if namesPair(name) { // "name": "api_key", "value": "…"
		j.announce(unescape(scratch[:0], j.raw[v+1:min(valueTo, v+1+maxName)]), next)
	}
	return next
}

// list masks the strings of a list under a telling name, as far as it is one of
// plain values.
func (j *jsonFinder) list(v int, kind string) int {
	depth := 0
	for i := v; i < len(j.raw); i++ {
		switch j.raw[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '{':
			return i // its members have names of their own
		case '"':
			to := stringEnd(j.raw, i+1)
			j.whole(i+1, to, kind)
			i = to
		}
	}
	return len(j.raw)
}

// random reports whether the string looks like a secret, for a weak name.
func (j *jsonFinder) random(from, to int) bool {
	content := j.raw[from:to]
	return len(content) >= minToken && !bytes.ContainsAny(content, " (${") && looksRandom(content, 3)
}

// whole masks a string as a whole.
func (j *jsonFinder) whole(from, to int, kind string) {
	j.inString(from, to, func(content []byte) {
		if !reference(content) {
			j.addValue(content, 0, len(content), kind)
		}
	})
}

// within looks for credentials in a string.
func (j *jsonFinder) within(from, to int) {
	if from >= j.joinedTo {
		j.joinedTo = max(j.joinedTo, j.atJoined(j.raw, from))
	}
	if to-from < shortest {
		return
	}
	j.inString(from, to, func(content []byte) {
		if first := skipSpace(content, 0); j.depth < maxNesting && first < len(content) &&
			(content[first] == '{' || content[first] == '[') && json.Valid(content) {
			j.json(content, j.depth+1)
			return
		}
		j.text(content)
	})
}

// inString calls find with the decoded string, and moves the spans that it
// adds to where they are in the raw text.
func (j *jsonFinder) inString(from, to int, find func(content []byte)) {
	if from < j.joinedTo {
		return
	}
	content := j.raw[from:to]
	first := len(j.spans)
	if bytes.IndexByte(content, '\\') < 0 {
		find(content)
		for i := range j.spans[first:] {
			s := &j.spans[first+i]
			s.from, s.to = s.from+from, s.to+from
		}
		return
	}
	find(unescape(make([]byte, 0, len(content)), content))
	at, decoded := 0, 0
	forward := func(target int) int {
		var buf [utf8.UTFMax]byte
		for decoded < target && at < len(content) {
			n, c := escaped(buf[:0], content[at:])
			at, decoded = at+n, decoded+len(c)
		}
		return from + at
	}
	for i := range j.spans[first:] {
		s := &j.spans[first+i]
		s.from = forward(s.from)
		s.to = forward(s.to)
	}
}

// unescape appends what a JSON string stands for to dst.
func unescape(dst, content []byte) []byte {
	for len(content) > 0 {
		n := bytes.IndexByte(content, '\\')
		if n < 0 {
			return append(dst, content...)
		}
		dst = append(dst, content[:n]...)
		content = content[n:]
		n, dst = escaped(dst, content)
		content = content[n:]
	}
	return dst
}

// escaped appends the character that content begins with to dst, and returns its
// length in content. What is no escape stands for itself.
func escaped(dst, content []byte) (int, []byte) {
	if content[0] != '\\' || len(content) < 2 {
		return 1, append(dst, content[0])
	}
	r, n := wirejson.DecodeEscape(content)
	switch {
	case n == 1:
		return 2, append(dst, content[1])
	case n == 2 && (r == '\b' || r == '\f'):
		r = ' '
	}
	return n, utf8.AppendRune(dst, r)
}
