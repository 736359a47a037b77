package redact

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// A jsonCredentialFinder examines the strings of one JSON text.
type jsonCredentialFinder struct {
	*credentialFinder
	raw   []byte
	depth int
	// expectedKind is the kind of credential in the next string, if the previous string was its name: a flag in a list
	// of arguments, or the name in the member before the value.
	expectedKind string
	expectAt     int // the offset at which that string must begin
	piecesEnd    int // strings that begin before this offset are pieces of a token that was already masked
}

// findInJSON finds credentials in the strings of a JSON text, and ignores all other parts. If the text is not valid
// JSON, it examines everything between quotes.
func (f *credentialFinder) findInJSON(raw []byte, depth int) {
	j := jsonCredentialFinder{credentialFinder: f, raw: raw, depth: depth}
	for i := 0; ; {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return
		}
		i = j.findAtString(i + n + 1)
	}
}

// findAtString examines the string whose content begins at from, and returns the offset at which scanning
// continues.
func (j *jsonCredentialFinder) findAtString(from int) int {
	to := jsonStringEnd(j.raw, from)
	next := skipSpace(j.raw, min(to+1, len(j.raw)))
	if next < len(j.raw) && j.raw[next] == ':' {
		return j.findInMember(from, to, skipSpace(j.raw, next+1))
	}
	j.findInValue(from, to, next)
	return next
}

// findInValue examines a string that is not the value of a credential name.
func (j *jsonCredentialFinder) findInValue(from, to, next int) {
	kind := ""
	if j.expectedKind != "" && j.expectAt == from {
		kind = j.expectedKind
	}
	j.expectedKind = ""
	if kind != "" {
		j.maskString(from, to, kind)
		return
	}
	j.findInString(from, to)
	switch {
	case to-from > 2 && j.raw[from] == '-': // "--api-key", "…"
		j.expectValueAfter(j.raw[from:to], next)
	case to-from == 2 && j.raw[from] == '-': // "login", "-p", "…"
		list := max(0, from-4*maxName)
		list += max(0, bytes.LastIndexByte(j.raw[list:from], '['))
		if flagPasswordStart(j.raw[list:], from-list) > 0 {
			j.expectValueAfter([]byte("password"), next)
		}
	}
}

// expectValueAfter records that name may be the name of the string after the comma at next.
func (j *jsonCredentialFinder) expectValueAfter(name []byte, next int) {
	if next >= len(j.raw) || j.raw[next] != ',' {
		return
	}
	if kind, how := classifyName(name); how == strong {
		if v := skipSpace(j.raw, next+1); v < len(j.raw) && j.raw[v] == '"' {
			j.expectedKind, j.expectAt = kind, v+1
		}
	}
}

// findInMember examines the member whose name is at from to to and whose value begins at v.
func (j *jsonCredentialFinder) findInMember(from, to, v int) int {
	j.findInString(from, to) // keys of a map can be secrets
	var scratch [maxName * 2]byte
	name := unescapeJSON(scratch[:0], j.raw[from:to])
	if v >= len(j.raw) {
		return len(j.raw)
	}
	kind, how := classifyName(name)
	switch {
	case j.raw[v] == '[' && how == strong:
		return j.maskList(v, kind)
	case j.raw[v] != '"':
		return v
	}
	valueTo := jsonStringEnd(j.raw, v+1)
	next := skipSpace(j.raw, min(valueTo+1, len(j.raw)))
	paired := j.expectedKind != "" && j.expectAt == from && isCalledValue(name)
	switch {
	case paired:
		j.maskString(v+1, valueTo, j.expectedKind)
	case how == strong, how == weak && j.isRandomString(v+1, valueTo):
		j.maskString(v+1, valueTo, kind)
	default:
		j.findInString(v+1, valueTo)
	}
	j.expectedKind = ""
	if namesSiblingValue(name) { // "name": "api_key", "value": "…"
		j.expectValueAfter(unescapeJSON(scratch[:0], j.raw[v+1:min(valueTo, v+1+maxName)]), next)
	}
	return next
}

// maskList adds the spans of the strings in a list under a credential name, up to the first object in the list. It
// returns the offset at which it stopped.
func (j *jsonCredentialFinder) maskList(v int, kind string) int {
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
			return i // its members have their own names
		case '"':
			to := jsonStringEnd(j.raw, i+1)
			j.maskString(i+1, to, kind)
			i = to
		}
	}
	return len(j.raw)
}

// isRandomString reports whether a string under a weak name looks like a secret.
func (j *jsonCredentialFinder) isRandomString(from, to int) bool {
	content := j.raw[from:to]
	return len(content) >= minToken && !bytes.ContainsAny(content, " (${") && looksRandom(content, 3)
}

// maskString adds a whole string.
func (j *jsonCredentialFinder) maskString(from, to int, kind string) {
	j.withDecodedString(from, to, func(content []byte) {
		if !isReference(content) {
			j.addNamedValue(content, 0, len(content), kind)
		}
	})
}

// findInString finds credentials in a string.
func (j *jsonCredentialFinder) findInString(from, to int) {
	if from >= j.piecesEnd {
		j.piecesEnd = max(j.piecesEnd, j.addSplitToken(j.raw, from))
	}
	if to-from < minCredential {
		return
	}
	j.withDecodedString(from, to, func(content []byte) {
		if first := skipSpace(content, 0); j.depth < maxNesting && first < len(content) &&
			(content[first] == '{' || content[first] == '[') && json.Valid(content) {
			j.findInJSON(content, j.depth+1)
			return
		}
		j.findInText(content)
	})
}

// withDecodedString calls find with the decoded string. It converts the spans that find adds to offsets in the raw
// text.
func (j *jsonCredentialFinder) withDecodedString(from, to int, find func(content []byte)) {
	if from < j.piecesEnd {
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
	find(unescapeJSON(make([]byte, 0, len(content)), content))
	at, decoded := 0, 0
	forward := func(target int) int {
		var buf [utf8.UTFMax]byte
		for decoded < target && at < len(content) {
			n, c := appendUnescaped(buf[:0], content[at:])
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

// unescapeJSON appends the decoded content of a JSON string to dst.
func unescapeJSON(dst, content []byte) []byte {
	for len(content) > 0 {
		n := bytes.IndexByte(content, '\\')
		if n < 0 {
			return append(dst, content...)
		}
		dst = append(dst, content[:n]...)
		content = content[n:]
		n, dst = appendUnescaped(dst, content)
		content = content[n:]
	}
	return dst
}

// appendUnescaped appends the first decoded character of content to dst, and returns its encoded length. It does not
// change an invalid escape.
func appendUnescaped(dst, content []byte) (int, []byte) {
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
