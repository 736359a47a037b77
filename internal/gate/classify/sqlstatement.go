package classify

import "strings"

// sqlStatement is the text between two semicolons.
type sqlStatement struct {
	*sqlLexer
	tokens []sqlToken
}

func (s sqlStatement) tokenText(i int) string { return s.text[s.tokens[i].start:s.tokens[i].end] }

func (s sqlStatement) tokenKind(i int) byte {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].kind
}

// isWordAt reports whether token i is this word.
func (s sqlStatement) isWordAt(i int, word string) bool {
	return s.tokenKind(i) == aWord && equalsWord(s.tokenText(i), word)
}

func (s sqlStatement) hasClass(i int, c wordClass) bool {
	return s.tokenKind(i) == aWord && s.tokens[i].class&c != 0
}

// wordWithObject returns a word with its object, for a refusal.
func (s sqlStatement) wordWithObject(i int) string {
	said := strings.ToUpper(s.tokenText(i))
	if s.hasClass(i+1, sqlObject) {
		said += " " + strings.ToUpper(s.tokenText(i+1))
	}
	return said
}

// sqlFinding is the deciding token of a statement. Its word is built only when it is shown, unless the word is not in
// the text.
type sqlFinding struct {
	verdict
	at   int  // the deciding token
	call bool // the token is a function name
}

func (f sqlFinding) worseOf(other sqlFinding) sqlFinding {
	v := f.verdict.worseOf(other.verdict)
	if other.Operation > f.Operation {
		f = other
	}
	f.verdict = v
	return f
}
