package redact

import "bytes"

// findAssignedValue examines the character at i, which may join a name and a value: name=value, "name": "value", name
// := `value`, <name>value, set("name", "value"). It adds the value if it is a secret, and returns the offset at which
// scanning continues.
func (f *credentialFinder) findAssignedValue(t []byte, i int) int {
	next := i + 1
	if name, kind := credentialNameAfterComparison(t, i); kind != "" {
		f.findTextComparedWithName(t, i, name, kind)
		return next
	}
	name, nameQuoted := nameBeforeOperator(t, i)
	if len(name) == 0 || t[i] == ',' && !nameQuoted || t[i] == '>' && !isTagName(t, i, len(name)) {
		return next
	}
	kind, how := classifyName(name)
	if kind == "" && isCalledValue(name) {
		kind, how = classifyName(identifierBefore(t, 0, siblingNameEnd(t, i))) // name="api_key" value="…"
		nameQuoted = true
	}
	if kind == "" {
		return next
	}
	v := parseValue(t, valueStart(t, i))
	value := t[v.from:v.to]
	if to := unbalancedValueEnd(t, v, how); to > 0 {
		return f.addNamedValue(t, v.from, to, kind)
	}
	if v.to < len(t) && (t[i] == '>' && t[v.to] != '<' && !inCharSet(t[v.to], space) || !v.quoted && (t[v.to] == '(' || t[v.to] == '[')) {
		return next // the text of the tag continues, or this is a call or an index
	}
	if v.quoted && isMemberName(t, v.to) || t[i] == ',' && !(v.quoted && len(value) >= 8 && looksRandom(value, 1)) {
		return next // this is the name of the next element of a list
	}
	if kind == "cookie" && !v.quoted && t[i] == ':' {
		if bytes.IndexByte(t[v.from:min(len(t), v.from+maxName)], '=') < 0 {
			return next
		}
		return f.addNamedValue(t, v.from, lineOrQuoteEnd(t, v.from), kind)
	}
	if kind == "authorization" && !v.quoted && authSchemeLength(value) == 0 && v.to < len(t) && t[v.to] == ' ' && isPlainWord(value) { // an unknown authorization scheme
		if to := runEnd(t, v.to+1, base64|dot); to-v.to > minToken && looksRandom(t[v.to+1:to], 1) {
			return f.addNamedValue(t, v.to+1, to, kind)
		}
	}
	if n := authSchemeLength(value); n > 0 && kind == "authorization" {
		if len(value)-n >= 8 && !isPlaceholder(value[n:]) {
			return f.addNamedValue(t, v.from, v.fullEnd(t), kind)
		}
		return next
	}
	if f.looksSecret(t, i, name, value, how, kind, nameQuoted, v.quoted) {
		to := f.addNamedValue(t, v.from, v.fullEnd(t), kind)
		if v.quoted {
			to = f.addConcatenatedTexts(t, to, kind)
		}
		return to
	}
	return next
}

// credentialNameAfterComparison returns the credential name after a comparison operator, as in "value" == name. The
// last character of the operator is at i.
func credentialNameAfterComparison(t []byte, i int) (name []byte, kind string) {
	if i < 3 || t[i] != '=' || t[i-1] != '=' && t[i-1] != '!' {
		return nil, ""
	}
	from := i + 1
	for from < len(t) && t[from] == ' ' {
		from++
	}
	to := runEnd(t[:min(len(t), from+maxName)], from, ident)
	if !mayEndCredentialName(t[:to], to) || to == from {
		return nil, ""
	}
	kind, _ = classifyName(t[from:to])
	return t[from:to], kind
}

// findTextComparedWithName adds the quoted text that is compared with a credential name.
func (f *credentialFinder) findTextComparedWithName(t []byte, i int, name []byte, kind string) {
	low := max(0, i-maxProbe)
	if n := len(f.spans); n > 0 {
		low = max(low, f.spans[n-1].to)
	}
	to := i
	for to > low && (isOperatorChar(t[to-1]) || inCharSet(t[to-1], space)) {
		to--
	}
	if to-1 <= low || !inCharSet(t[to-1], quoted) {
		return
	}
	quote := t[to-1]
	for to--; to > low && t[to-1] == '\\'; to-- {
	}
	from := low + bytes.LastIndexByte(t[low:to], quote) + 1
	if _, how := classifyName(name); from > low && bytes.IndexByte(t[from:to], '\n') < 0 && f.looksSecret(t, i, name, t[from:to], how, kind, false, true) {
		f.addNamedValue(t, from, to, kind)
	}
}

// unbalancedValueEnd returns the end of an unquoted value that contains mismatched brackets and continues to the end of
// its line, or 0. Source code has no such value.
func unbalancedValueEnd(t []byte, v valueRange, how credentialNameStrength) int {
	const longest = 128
	if v.quoted || how != strong || v.to == len(t) || bytes.IndexByte([]byte("([{)]}"), t[v.to]) < 0 {
		return 0
	}
	to := v.from
	for to < len(t) && to <= v.from+longest && t[to] > ' ' {
		to++
	}
	if to < len(t) && t[to] != '\n' && t[to] != '\r' {
		return 0
	}
	for to > v.from && (inCharSet(t[to-1], quoted) || t[to-1] == ',' || t[to-1] == ';') {
		to--
	}
	if text := t[v.from:to]; len(text) >= 8 && !hasMatchingBrackets(text) {
		return to
	}
	return 0
}

// hasMatchingBrackets reports whether no closing bracket follows an open bracket of another kind.
func hasMatchingBrackets(text []byte) bool {
	var open []byte
	for _, c := range text {
		switch c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if n := len(open); n > 0 {
				if open[n-1] != c-1 && open[n-1] != c-2 {
					return false
				}
				open = open[:n-1]
			}
		}
	}
	return true
}

// looksSecret reports whether the value after the operator at i looks like a secret. how is the strength of its name.
// In text, such names often precede examples, types, calls and words instead of secrets.
func (f *credentialFinder) looksSecret(t []byte, i int, name, value []byte, how credentialNameStrength, kind string, nameQuoted, valueQuoted bool) bool {
	if len(value) == 0 || isPlaceholder(value) || bytes.EqualFold(value, name) {
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
	case tight && (isUpperCaseName(name) || isPrecededByAny(t, i-len(name), ";?&")): // NAME=value, …;name=value, …&name=value
		return len(value) >= 4 && (looksRandom(value, 1) || !isPlainWord(value) || kind == "password")
	}
	if len(value) >= minToken && runEnd(value, 0, digit) == len(value) {
		return true
	}
	return len(value) >= 6 && looksRandom(value, 1) && (bytes.IndexByte(value, '.') < 0 || looksRandom(value, 4))
}

// isMemberName reports whether a colon follows the quoted text that ends at i.
func isMemberName(t []byte, i int) bool {
	for i < len(t) && (inCharSet(t[i], space|quoted) || t[i] == '\\') {
		i++
	}
	return i < len(t) && t[i] == ':'
}

// nameBeforeOperator returns the name before the operator at i, and whether it is quoted. It skips syntax between a
// name and its value: a type, brackets, a longer operator.
func nameBeforeOperator(t []byte, i int) (name []byte, inQuotes bool) {
	low := max(0, i-2*maxName)
	end := i
	for end > low && (inCharSet(t[end-1], space) || isOperatorChar(t[end-1])) {
		end--
	}
	if end == i && end > low+1 && t[end-1] == '.' && t[end-2] == ' ' { // .=
		end = runStart(t, low, end-1, space)
	}
	if end > low+1 && t[end-1] == ']' { // name[] = , name[32] = , x["name"] =
		for end > low && t[end-1] != '[' && (inCharSet(t[end-1], digit|quoted) || t[end-1] == ']') {
			end--
		}
		if end > low && t[end-1] == '[' {
			end--
		}
	}
	for end > low && (inCharSet(t[end-1], quoted) || t[end-1] == '\\') {
		end--
		inQuotes = inQuotes || t[end] != '\\'
	}
	name = identifierBefore(t, low, end)
	if isTypeName(name) {
		before := runStart(t, low, end-len(name), space)
		if earlier := identifierBefore(t, low, before); len(earlier) > 0 && before < end-len(name) {
			name = earlier
		}
	}
	return name, inQuotes
}

// siblingNameEnd is for a member or attribute called value whose name ends at i. It returns the end of the name in the
// member or attribute before it: name="api_key" value=, "name": "api_key", "value":.
func siblingNameEnd(t []byte, i int) int {
	low := max(0, i-2*maxName)
	skip := func() {
		for i > low && (inCharSet(t[i-1], space|quoted) || t[i-1] == ',' || t[i-1] == '\\') {
			i--
		}
	}
	skip()
	i = max(low, i-len("value"))
	skip()
	return i
}

// isTagName reports whether the name of length n that ends at i is the name of a tag, as in <name>.
func isTagName(t []byte, i, n int) bool { return i-n > 0 && t[i-n-1] == '<' }

// valueStart returns the offset of the value after the operator at i, or of its opening quote.
func valueStart(t []byte, i int) int {
	const most = 24
	high := min(len(t), i+most)
	for i < high && (isOperatorChar(t[i]) || t[i] == ',') {
		i++
	}
	for i < high && inCharSet(t[i], space) {
		i++
	}
	if i+1 < high && t[i] == '@' && inCharSet(t[i+1], quoted) {
		i++
	}
	return i
}

func isPrecededByAny(t []byte, i int, chars string) bool {
	return i > 0 && bytes.IndexByte([]byte(chars), t[i-1]) >= 0
}
