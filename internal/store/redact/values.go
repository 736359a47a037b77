package redact

import (
	"bytes"
	"slices"
)

// A value is where a value stands, without its quotes. Of a long one only the
// beginning is known; whole returns the rest.
type value struct {
	from, to int
	quoted   bool
	// cut is set when the value goes on, up to the quote or, without, up to what
	// cannot be a part of it.
	cut   bool
	quote byte
}

// valueAt returns the value that begins at i.
func valueAt(t []byte, i int) value {
	open := i
	for open < len(t) && open < i+8 && t[open] == '\\' { // quotes within quotes
		open++
	}
	if open < len(t) && has(t[open], quoted) {
		return quotedAt(t, open+1, t[open], open > i)
	}
	if n := maskLength(t[i:]); n > 0 {
		return value{from: i, to: i + n}
	}
	to := i
	if n := schemeLength(t[i:min(len(t), i+32)]); n > 0 { // Bearer and what follows
		to += n
	}
	for to < len(t) && to < i+probe && inBareValue(t[to]) {
		to++
	}
	cut := to < len(t) && inBareValue(t[to])
	for !cut && to > i && (t[to-1] == '.' || t[to-1] == ':') {
		to--
	}
	return value{from: i, to: to, cut: cut}
}

func inBareValue(c byte) bool { return !has(c, closer) && c != '\\' }

// quotedAt returns the value that begins at from, behind a quote, which is itself
// escaped when inner is set. A value ends on its line.
func quotedAt(t []byte, from int, quote byte, inner bool) value {
	v := value{from: from, to: from, quoted: true, quote: quote}
	if n := maskLength(t[from:]); n > 0 {
		v.to = from + n
		return v
	}
	for ; v.to < len(t) && v.to < from+probe; v.to++ {
		switch c := t[v.to]; {
		case c == '\n':
			return value{from: from, to: from}
		case c == '\\' && !inner:
			v.to++
		case c == quote:
			for inner && v.to > from && t[v.to-1] == '\\' {
				v.to--
			}
			return v
		}
	}
	v.to = min(v.to, len(t))
	if v.cut = v.to < len(t); !v.cut && bytes.IndexByte(t[from:v.to], ' ') >= 0 {
		return value{from: from, to: from} // no quote ends it, and it is no word that was cut off
	}
	return v
}

// whole returns the end of the value.
func (v value) whole(t []byte) int {
	to := v.to
	for v.cut && to < len(t) && (v.quoted && t[to] != v.quote && t[to] != '\n' || !v.quoted && inBareValue(t[to])) {
		to++
	}
	return to
}

func lineEnd(t []byte, i int) int {
	const longest = 4096
	for end := min(len(t), i+longest); i < end && t[i] >= ' ' && !has(t[i], quoted); i++ {
	}
	return i
}

// probe is how much of a value is looked at to tell what it is.
const probe = 256

// looksRandom reports whether a value holds letters and digits, and changes at
// least so many times from one to the other, or from small to capital.
func looksRandom(value []byte, changes int) bool {
	const enough = 128
	var seen set
	var n int
	for i, c := range value[:min(len(value), enough)] {
		class := classes[c]
		seen |= class
		if i > 0 {
			before := classes[value[i-1]]
			if before&digit != 0 && class&(lower|upper) != 0 || before&(lower|upper) != 0 && class&digit != 0 ||
				before&lower != 0 && class&upper != 0 {
				n++
			}
		}
	}
	return n >= changes && seen&(lower|upper) != 0 && seen&digit != 0
}

// reference reports whether a value names where the secret is, instead of being it.
func reference(value []byte) bool {
	n := len(value)
	return n > 3 && value[0] == '$' && value[1] == '{' && bytes.IndexByte(value, '}') == n-1 ||
		n > 2 && value[0] == '<' && value[n-1] == '>' ||
		n > 4 && value[0] == '{' && value[1] == '{' && value[n-1] == '}'
}

// placeholder reports whether a value stands for one: an example, a reference, a
// word for the thing itself.
func placeholder(value []byte) bool {
	if reference(value) || same(value) {
		return true
	}
	for _, prefix := range known.placeholderBeginnings {
		if hasFoldPrefix(value, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(known.placeholders, func(w string) bool { return len(w) == len(value) && hasFoldPrefix(value, w) })
}

// same reports whether all characters are the same one, as in ********.
func same(value []byte) bool { return len(value) > 2 && bytes.Count(value, value[:1]) == len(value) }

// isShout reports whether a name is that of an environment variable.
func isShout(name []byte) bool { return runEnd(name, 0, upper|digit|under) == len(name) }

// plainWord reports whether a value is made of letters and separators only.
func plainWord(value []byte) bool { return runEnd(value, 0, lower|upper|ident&^digit) == len(value) }

func isValue(name []byte) bool { return string(name) == "value" || string(name) == "Value" }

// namesPair reports whether a member of this name names the one named value.
func namesPair(name []byte) bool {
	switch string(name) {
	case "name", "Name", "key", "Key", "header", "variable":
		return true
	}
	return false
}

func isOperator(c byte) bool {
	return c == ':' || c == '=' || c == '?' || c == '!' || c == '>' || c == '|' || c == '+'
}

func isType(name []byte) bool {
	return slices.ContainsFunc(known.types, func(t string) bool { return t == string(name) })
}

func identBefore(t []byte, low, end int) []byte {
	return t[runStart(t, max(low, end-maxName), end, ident):end]
}

// schemeLength returns the length of a scheme of authorization and the space
// after it, 0 when the value does not begin with one.
func schemeLength(value []byte) int {
	for _, scheme := range [...]string{"bearer ", "basic ", "token ", "digest ", "apikey "} {
		if hasFoldPrefix(value, scheme) {
			if n := runEnd(value, len(scheme), space); n < len(value) {
				return n
			}
		}
	}
	return 0
}

// mask returns the replacement of a value; what is empty, masked or a reference
// stays.
func mask(kind, value string) string {
	b := []byte(value)
	if value == "" || maskLength(b) == len(b) || reference(b) {
		return value
	}
	return string(appendMask(nil, kind, digest(b)))
}

// symbols stand in passwords more often than in words, paths and expressions.
const symbols = "!#$%^&*?~{}"
