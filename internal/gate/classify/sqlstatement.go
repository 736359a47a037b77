package classify

import "strings"

// statement is the text between two semicolons.
type statement struct {
	*lexer
	tokens []token
}

func (s statement) word(i int) string { return s.text[s.tokens[i].start:s.tokens[i].end] }

func (s statement) kind(i int) byte {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].kind
}

// is reports whether token i is this word.
func (s statement) is(i int, word string) bool {
	return s.kind(i) == aWord && isWord(s.word(i), word)
}

func (s statement) has(i int, c class) bool { return s.kind(i) == aWord && s.tokens[i].class&c != 0 }

// said returns a word with its object, for a refusal.
func (s statement) said(i int) string {
	said := strings.ToUpper(s.word(i))
	if s.has(i+1, sqlObject) {
		said += " " + strings.ToUpper(s.word(i+1))
	}
	return said
}

// finding is the deciding token of a statement. Its word is built only when shown, unless it is not in the
// text.
type finding struct {
	verdict
	at   int  // the deciding token
	call bool // the token is a function name
}

func (f finding) worse(other finding) finding {
	v := f.verdict.worse(other.verdict)
	if other.Operation > f.Operation {
		f = other
	}
	f.verdict = v
	return f
}
