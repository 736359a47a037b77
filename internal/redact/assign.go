package redact

import "bytes"

// atOperator looks at what may join a name and a value: name=value,
// "name": "value", name := `value`, <name>value, set("name", "value"). It returns
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

// isSecret reports whether the value after the operator i looks like a secret, for
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

// isMember reports whether the quoted text that ends at i is followed by a colon.
func isMember(t []byte, i int) bool {
	for i < len(t) && (has(t[i], space|quoted) || t[i] == '\\') {
		i++
	}
	return i < len(t) && t[i] == ':'
}

// nameBefore returns the name that ends before the operator i and whether it
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

// pairedNameEnd returns the end of the name that stands in the member or attribute
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

// isTag reports whether the name of length n that ends at i is that of a tag, as
// in <name>.
func isTag(t []byte, i, n int) bool { return i-n > 0 && t[i-n-1] == '<' }

// afterOperator returns the place where the value begins, or its opening quote.
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

func afterAny(t []byte, i int, chars string) bool {
	return i > 0 && bytes.IndexByte([]byte(chars), t[i-1]) >= 0
}
