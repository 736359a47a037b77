package redact

import (
	"bytes"
	"slices"
)

// atOperator looks at what may join a name and a value: name=value,
// "name": "value", name := `value`, <name>value, set("name", "value"). It gives
// the place to go on from.
func (f *finder) atOperator(t []byte, i int) int {
	next := i + 1
	name, nameQuoted := nameBefore(t, i)
	if len(name) == 0 || t[i] == ',' && !nameQuoted || t[i] == '>' && !isTag(t, i, len(name)) {
		return next
	}
	kind, how := classify(name)
	if kind == "" && isValue(name) {
		kind, how = classify(identBefore(t, 0, pairedNameEnd(t, i))) // name="api_key" value="…"
		nameQuoted = true
	}
	if kind == "" {
		return next
	}
	v := valueAt(t, afterOperator(t, i))
	value := t[v.from:v.to]
	if v.to < len(t) && (t[i] == '>' && t[v.to] != '<' && !has(t[v.to], space) || !v.quoted && (t[v.to] == '(' || t[v.to] == '[')) {
		return next // not what the tag holds; a call, an index
	}
	if v.quoted && isMember(t, v.to) || t[i] == ',' && !(v.quoted && len(value) >= 8 && looksRandom(value, 1)) {
		return next // the name of what comes next in a list
	}
	if kind == "cookie" && !v.quoted && t[i] == ':' {
		if bytes.IndexByte(t[v.from:min(len(t), v.from+maxName)], '=') < 0 {
			return next
		}
		return f.addValue(t, v.from, lineEnd(t, v.from), kind)
	}
	if n := schemeLength(value); n > 0 && kind == "authorization" {
		if len(value)-n >= 8 && !placeholder(value[n:]) {
			return f.addValue(t, v.from, v.whole(t), kind)
		}
		return next
	}
	if f.isSecret(t, i, name, value, how, kind, nameQuoted, v.quoted) {
		return f.addValue(t, v.from, v.whole(t), kind)
	}
	return next
}

// isSecret says whether the value after the operator i looks like a secret, for
// a name of that strength. Text is full of names without a secret: examples,
// types, calls, words.
func (f *finder) isSecret(t []byte, i int, name, value []byte, how strength, kind string, nameQuoted, valueQuoted bool) bool {
	if len(value) == 0 || placeholder(value) || bytes.EqualFold(value, name) {
		return false
	}
	if how == weak {
		changes := 4
		if valueQuoted {
			changes = 3
		}
		return len(value) >= minToken && !bytes.ContainsAny(value, " \\(${.") && looksRandom(value, changes)
	}
	tight := i+1 < len(t) && t[i] == '=' && t[i+1] != ' '
	switch {
	case valueQuoted && nameQuoted: // as in JSON
		return len(value) >= 4 && bytes.IndexByte(value, ' ') < 0
	case valueQuoted:
		changes := 1
		if kind == "password" {
			changes = 0
		}
		return bytes.IndexByte(value, ' ') < 0 && len(value) >= 6 && (looksRandom(value, changes) ||
			len(value) >= 8 && bytes.ContainsAny(value, symbols) || len(value) >= minToken && runEnd(value, 0, digit) == len(value))
	case bytes.ContainsAny(value, "([{$"):
		return false
	case tight && (isShout(name) || afterAny(t, i-len(name), ";?&")): // NAME=value, …;name=value, …&name=value
		return len(value) >= 4 && (looksRandom(value, 1) || !plainWord(value) || kind == "password")
	}
	return len(value) >= 6 && looksRandom(value, 1) && (bytes.IndexByte(value, '.') < 0 || looksRandom(value, 4))
}

// isMember says whether the quoted text that ends at i is followed by a colon.
func isMember(t []byte, i int) bool {
	for i < len(t) && (has(t[i], space|quoted) || t[i] == '\\') {
		i++
	}
	return i < len(t) && t[i] == ':'
}

// symbols stand in passwords more often than in words, paths and expressions.
const symbols = "!#$%^&*?~{}"

// nameBefore gives the name that ends before the operator i and whether it
// stands in quotes. What a language puts between a name and its value (a type,
// brackets, a longer operator) is skipped.
func nameBefore(t []byte, i int) (name []byte, inQuotes bool) {
	low := max(0, i-2*maxName)
	end := i
	for end > low && (has(t[end-1], space) || isOperator(t[end-1])) {
		end--
	}
	if end == i && end > low+1 && t[end-1] == '.' && t[end-2] == ' ' { // .=
		end = runStart(t, low, end-1, space)
	}
	if end > low+1 && t[end-1] == ']' { // name[] = , name[32] = , x["name"] =
		for end > low && t[end-1] != '[' && (has(t[end-1], digit|quoted) || t[end-1] == ']') {
			end--
		}
		if end > low && t[end-1] == '[' {
			end--
		}
	}
	for end > low && (has(t[end-1], quoted) || t[end-1] == '\\') {
		end--
		inQuotes = inQuotes || t[end] != '\\'
	}
	name = identBefore(t, low, end)
	if isType(name) {
		before := runStart(t, low, end-len(name), space)
		if earlier := identBefore(t, low, before); len(earlier) > 0 && before < end-len(name) {
			name = earlier
		}
	}
	return name, inQuotes
}

func identBefore(t []byte, low, end int) []byte {
	return t[runStart(t, max(low, end-maxName), end, ident):end]
}

// pairedNameEnd gives the end of the name that stands in the member or attribute
// before the one named value, which ends at i: name="api_key" value=,
// "name": "api_key", "value":.
func pairedNameEnd(t []byte, i int) int {
	low := max(0, i-2*maxName)
	skip := func() {
		for i > low && (has(t[i-1], space|quoted) || t[i-1] == ',' || t[i-1] == '\\') {
			i--
		}
	}
	skip()
	i = max(low, i-len("value"))
	skip()
	return i
}

// isTag says whether the name of length n that ends at i is that of a tag, as
// in <name>.
func isTag(t []byte, i, n int) bool { return i-n > 0 && t[i-n-1] == '<' }

func isOperator(c byte) bool {
	return c == ':' || c == '=' || c == '?' || c == '!' || c == '>' || c == '|' || c == '+'
}

func isType(name []byte) bool {
	return slices.ContainsFunc(known.types, func(t string) bool { return t == string(name) })
}

// afterOperator gives the place where the value begins, or its opening quote.
func afterOperator(t []byte, i int) int {
	const most = 24
	high := min(len(t), i+most)
	for i < high && (isOperator(t[i]) || t[i] == ',') {
		i++
	}
	for i < high && has(t[i], space) {
		i++
	}
	if i+1 < high && t[i] == '@' && has(t[i+1], quoted) {
		i++
	}
	return i
}

// A value is where a value stands, without its quotes. Of a long one only the
// beginning is known; whole gives the rest.
type value struct {
	from, to int
	quoted   bool
	// cut says that the value goes on, up to the quote or, without, up to what
	// cannot be a part of it.
	cut   bool
	quote byte
}

// probe is how much of a value is looked at to tell what it is.
const probe = 256

// valueAt gives the value that begins at i.
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

// quotedAt gives the value that begins at from, behind a quote, which is itself
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

// whole gives the end of the value.
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

func afterAny(t []byte, i int, chars string) bool {
	return i > 0 && bytes.IndexByte([]byte(chars), t[i-1]) >= 0
}

// isShout says whether a name is that of an environment variable.
func isShout(name []byte) bool {
	for _, c := range name {
		if !has(c, upper|digit|under) {
			return false
		}
	}
	return true
}

// plainWord says whether a value is made of letters and separators only.
func plainWord(value []byte) bool { return runEnd(value, 0, lower|upper|ident&^digit) == len(value) }

// looksRandom says whether a value holds letters and digits, and changes at
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

// reference says whether a value names where the secret is, instead of being it.
func reference(value []byte) bool {
	n := len(value)
	return n > 3 && value[0] == '$' && value[1] == '{' && bytes.IndexByte(value, '}') == n-1 ||
		n > 2 && value[0] == '<' && value[n-1] == '>' ||
		n > 4 && value[0] == '{' && value[1] == '{' && value[n-1] == '}'
}

// placeholder says whether a value stands for one: an example, a reference, a
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

// same says whether all characters are the same one, as in ********.
func same(value []byte) bool {
	for _, c := range value {
		if c != value[0] {
			return false
		}
	}
	return len(value) > 2
}
