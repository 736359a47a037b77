package redact

import (
	"bytes"
	"slices"
)

// A valueRange is the range of a value without its quotes. For a long value, to is before its end, and fullEnd returns
// the end.
type valueRange struct {
	from, to int
	quoted   bool
	// cut reports whether the value continues after to: up to the closing quote, or up to a character that ends an
	// unquoted value.
	cut   bool
	quote byte
}

// parseValue returns the range of the value that begins at i.
func parseValue(t []byte, i int) valueRange {
	open := i
	for open < len(t) && open < i+8 && t[open] == '\\' { // nested quotes
		open++
	}
	if open < len(t) && inCharSet(t[open], quoted) {
		return parseQuotedValue(t, open+1, t[open], open > i)
	}
	if n := leadingMaskLength(t[i:]); n > 0 {
		return valueRange{from: i, to: i + n}
	}
	to := i
	if n := authSchemeLength(t[i:min(len(t), i+32)]); n > 0 { // Bearer and the credential after it
		to += n
	}
	for to < len(t) && to < i+maxProbe && isBareValueChar(t[to]) {
		to++
	}
	cut := to < len(t) && isBareValueChar(t[to])
	for !cut && to > i && (t[to-1] == '.' || t[to-1] == ':') {
		to--
	}
	return valueRange{from: i, to: to, cut: cut}
}

func isBareValueChar(c byte) bool { return !inCharSet(c, closer) && c != '\\' }

// parseQuotedValue returns the range of the value that begins at from, after a quote. inner reports whether the quote
// itself is escaped. A value does not continue on the next line.
func parseQuotedValue(t []byte, from int, quote byte, inner bool) valueRange {
	v := valueRange{from: from, to: from, quoted: true, quote: quote}
	if n := leadingMaskLength(t[from:]); n > 0 {
		v.to = from + n
		return v
	}
	for ; v.to < len(t) && v.to < from+maxProbe; v.to++ {
		switch c := t[v.to]; {
		case c == '\n':
			return valueRange{from: from, to: from}
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
		return valueRange{from: from, to: from} // unterminated, and not a single word that is cut off
	}
	return v
}

// fullEnd returns the end of the whole value, even if the value is long.
func (v valueRange) fullEnd(t []byte) int {
	to := v.to
	for v.cut && to < len(t) && (v.quoted && t[to] != v.quote && t[to] != '\n' || !v.quoted && isBareValueChar(t[to])) {
		to++
	}
	return to
}

// lineOrQuoteEnd returns the end of a value that may contain spaces. The value ends at a quote, at a control character
// such as a line end, or after 4,096 characters.
func lineOrQuoteEnd(t []byte, i int) int {
	const longest = 4096
	for end := min(len(t), i+longest); i < end && t[i] >= ' ' && !inCharSet(t[i], quoted); i++ {
	}
	return i
}

// maxProbe limits how many characters of a value are examined.
const maxProbe = 256

// looksRandom reports whether a value contains letters and digits, and changes between letters and digits or from lower
// to upper case at least changes times.
func looksRandom(value []byte, changes int) bool {
	const enough = 128
	var seen charSet
	var n int
	for i, c := range value[:min(len(value), enough)] {
		class := charSets[c]
		seen |= class
		if i > 0 {
			before := charSets[value[i-1]]
			if before&digit != 0 && class&(lower|upper) != 0 || before&(lower|upper) != 0 && class&digit != 0 ||
				before&lower != 0 && class&upper != 0 {
				n++
			}
		}
	}
	return n >= changes && seen&(lower|upper) != 0 && seen&digit != 0
}

// isReference reports whether a value refers to a secret instead of being one.
func isReference(value []byte) bool {
	n := len(value)
	return n > 3 && value[0] == '$' && value[1] == '{' && bytes.IndexByte(value, '}') == n-1 ||
		n > 2 && value[0] == '<' && value[n-1] == '>' ||
		n > 4 && value[0] == '{' && value[1] == '{' && value[n-1] == '}'
}

// isPlaceholder reports whether a value is an example, a reference, or a generic word such as "secret".
func isPlaceholder(value []byte) bool {
	if isReference(value) || isOneRepeatedChar(value) {
		return true
	}
	for _, prefix := range rules.placeholderBeginnings {
		if hasFoldPrefix(value, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(rules.placeholders, func(w string) bool { return len(w) == len(value) && hasFoldPrefix(value, w) })
}

// isOneRepeatedChar reports whether all characters are equal, as in ********.
func isOneRepeatedChar(value []byte) bool {
	return len(value) > 2 && bytes.Count(value, value[:1]) == len(value)
}

// isUpperCaseName reports whether a name has the form of an environment variable.
func isUpperCaseName(name []byte) bool { return runEnd(name, 0, upper|digit|under) == len(name) }

// isPlainWord reports whether a value consists of letters and separators.
func isPlainWord(value []byte) bool { return runEnd(value, 0, lower|upper|ident&^digit) == len(value) }

// isCalledValue reports whether a member is called value. In that case, the value of the member next to it may be its
// real name.
func isCalledValue(name []byte) bool { return string(name) == "value" || string(name) == "Value" }

// namesSiblingValue reports whether the value of a member with this name is the real name of a sibling member called
// value.
func namesSiblingValue(name []byte) bool {
	switch string(name) {
	case "name", "Name", "key", "Key", "header", "variable":
		return true
	}
	return false
}

func isOperatorChar(c byte) bool {
	return c == ':' || c == '=' || c == '?' || c == '!' || c == '>' || c == '|' || c == '+'
}

func isTypeName(name []byte) bool {
	return slices.ContainsFunc(rules.types, func(t string) bool { return t == string(name) })
}

func identifierBefore(t []byte, low, end int) []byte {
	return t[runStart(t, max(low, end-maxName), end, ident):end]
}

// authSchemeLength returns the length of the authorization scheme at the beginning of value, with the
// space after it, or 0.
func authSchemeLength(value []byte) int {
	for _, scheme := range [...]string{"bearer ", "basic ", "token ", "digest ", "apikey "} {
		if hasFoldPrefix(value, scheme) {
			if n := runEnd(value, len(scheme), space); n < len(value) {
				return n
			}
		}
	}
	return 0
}

// maskValue returns the mask of a value. It returns an empty value, a mask or a reference unchanged.
func maskValue(kind, value string) string {
	b := []byte(value)
	if value == "" || leadingMaskLength(b) == len(b) || isReference(b) {
		return value
	}
	return string(appendMask(nil, kind, shortHash(b)))
}

// symbols contains characters that are more common in passwords than in words, paths and expressions.
const symbols = "!#$%^&*?~{}"
