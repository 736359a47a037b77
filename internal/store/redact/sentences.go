package redact

import (
	"bytes"

	"mcpproxy/internal/mcp/wirejson"
)

// This file finds values in sentences, such as "my password is …".

// findValueInSentence returns the value that a sentence states for a credential name that ends at end: "the password
// for the database is …", password "…".
func findValueInSentence(t []byte, end int) (v valueRange, kind string, ok bool) {
	if end+2 >= len(t) || t[end] != ' ' || !mayEndCredentialName(t, end) {
		return v, "", false
	}
	low := max(0, end-maxName)
	from := skipEscapeRest(t, runStart(t, low, end, ident), end)
	short := holdsPasswordWord(t[from:end])
	if from > low && t[from-1] == ' ' { // API key
		from = skipEscapeRest(t, runStart(t, low, from-1, ident), from-1)
	}
	kind, how := classifyName(t[from:end])
	if how != strong {
		return v, "", false
	}
	at, said := skipStatementWords(t, end+1)
	v = parseValue(t, at)
	for !v.cut && v.to > v.from && !v.quoted && (t[v.to-1] == '!' || t[v.to-1] == '?') {
		v.to--
	}
	text := t[v.from:v.to]
	if v.quoted && (v.to == len(t) || t[v.to] != v.quote && t[v.to] != '\\') {
		return v, "", false
	}
	if len(text) < 6 || isPlaceholder(text) || bytes.ContainsAny(text, " /(") || !short && (len(text) < minToken || runEnd(text, 0, base64|dot) < len(text)) {
		return v, "", false
	}
	switch {
	case !short && !looksRandom(text, 1):
	case said, v.quoted:
		ok = looksRandom(text, 1) || len(text) >= 8 && bytes.ContainsAny(text[1:len(text)-1], symbols)
	default:
		ok = len(text) >= 8 && looksRandom(text, 2) && bytes.IndexByte(text, '.') < 0 && (text[0] != 'v' || !inCharSet(text[1], digit))
	}
	return v, kind, ok
}

// holdsPasswordWord reports whether a name contains password or passwd. The quick test finds such a name with any
// suffix.
func holdsPasswordWord(name []byte) bool {
	last := name[runStart(name, 0, len(name), alnum):]
	return bytes.Contains(last, []byte("swo")) || bytes.Contains(last, []byte("swd"))
}

// skipStatementWords skips the words from i that may be between a name and its value. It returns their end, and whether
// the value must follow them, as it does after "is".
func skipStatementWords(t []byte, i int) (at int, said bool) {
	const most = 8
	about := false
	for at = i; at < i+maxName; {
		end := runEnd(t, at, lower)
		if end == at || end+1 >= len(t) || t[end] != ' ' && (t[end] != ':' || t[end+1] != ' ') || end-at > 2*most {
			break
		}
		w := string(t[at:end])
		switch {
		case w == "is" || w == "was" || w == "be" || w == "are":
			said, about = true, false
		case said && isStatementWord(t[at:end]):
		case !said && (w == "for" || w == "of" || w == "on" || w == "in" || w == "to"), about, w == "will":
			about = true
		default:
			return at, said
		}
		if at = end + 1; t[end] == ':' {
			at++
		}
	}
	if !said && at > i {
		return i, false
	}
	return at, said
}

// addSentenceValueAfter adds the value in a sentence after a name that ends at end. It returns the offset after
// the value, or end.
func (f *credentialFinder) addSentenceValueAfter(t []byte, end int) int {
	if v, kind, ok := findValueInSentence(t, end); ok {
		return f.addNamedValue(t, v.from, v.fullEnd(t), kind)
	}
	return end
}

// isSecretInSentence reports whether the long word at begin is the value of a name such as "password" before it.
func isSecretInSentence(b []byte, begin, end int) bool {
	i := begin - 1
	for i > 0 && (inCharSet(b[i], quoted) || b[i] == '\\') {
		i--
	}
	if i < 3 || b[i] != ' ' {
		return false
	}
	if b[i-1] == ':' {
		i--
	}
	if !mayEndCredentialName(b, i) && !isStatementWord(b[runStart(b, max(0, i-10), i, lower):i]) || !looksRandom(b[begin:end], 1) {
		return false
	}
	for i := max(0, begin-2*maxName); i < begin; i++ {
		if b[i] == ' ' {
			if v, _, ok := findValueInSentence(b, i); ok && v.from >= begin-1 {
				return true
			}
		}
	}
	return false
}

// isStatementWord reports whether a word may directly precede a value in a sentence.
func isStatementWord(w []byte) bool {
	switch string(w) {
	case "is", "was", "are", "be", "set", "to", "now", "currently", "still":
		return true
	}
	return false
}

// isSecretInJSONSentence reports whether a value follows the name that ends at end. The text is raw JSON, in which an
// escape may continue the value.
func isSecretInJSONSentence(b []byte, end int) bool {
	v, _, ok := findValueInSentence(b, end)
	if ok {
		return true
	}
	if v.to == 0 || v.to+1 >= len(b) || b[v.to] != '\\' {
		return false
	}
	_, n := wirejson.DecodeEscape(b[v.to:])
	return n > 2
}
