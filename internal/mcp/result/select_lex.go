package result

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The kinds of tokens. The kind of an operator is its text.
const (
	tokenEnd      = ""
	tokenName     = "name"
	tokenField    = "field" // .name
	tokenVariable = "variable"
	tokenNumber   = "number"
	tokenString   = "string"
)

// lexer splits an expression into tokens.
type lexer struct {
	text string
	at   int

	kind  string // kind of the next token
	word  string // text of the next token, without the sign of a field or variable
	start int
}

// syntaxError returns a syntax error at the current position.
func (l *lexer) syntaxError(format string, args ...any) error {
	return fmt.Errorf("%s at character %d", fmt.Sprintf(format, args...), utf8.RuneCountInString(l.text[:l.start])+1)
}

var operators = []string{"//=", "//", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "..",
	"|", ",", "+", "-", "*", "/", "%", "<", ">", "=", ".", "[", "]", "(", ")", "{", "}", ":", ";", "?", "@"}

// readToken reads the next token.
func (l *lexer) readToken() error {
	for l.at < len(l.text) {
		if c := l.text[l.at]; c == '#' {
			if end := strings.IndexByte(l.text[l.at:], '\n'); end >= 0 {
				l.at += end
				continue
			}
			l.at = len(l.text)
		} else if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			break
		} else {
			l.at++
		}
	}
	l.start = l.at
	if l.at == len(l.text) {
		l.kind, l.word = tokenEnd, ""
		return nil
	}
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case isNameStart(c):
		l.setToken(tokenName, rest[:nameLength(rest)])
	case c == '.' && len(rest) > 1 && isNameStart(rest[1]):
		end := 1 + nameLength(rest[1:])
		l.setToken(tokenField, rest[:end])
		l.word = l.word[1:]
	case c == '$' && len(rest) > 1 && isNameStart(rest[1]):
		end := 1 + nameLength(rest[1:])
		l.setToken(tokenVariable, rest[:end])
		l.word = l.word[1:]
	case '0' <= c && c <= '9':
		l.setToken(tokenNumber, rest[:numberLength(rest)])
	case c == '"': // the parser reads the string, because it may contain expressions
		l.kind, l.word = tokenString, ""
		l.at++
	default:
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				l.setToken(op, op)
				return nil
			}
		}
		_, n := utf8.DecodeRuneInString(rest)
		return l.syntaxError("unexpected %q", rest[:n])
	}
	return nil
}

func (l *lexer) setToken(kind, word string) {
	l.kind, l.word = kind, word
	l.at += len(word)
}

func isNameStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func nameLength(s string) int {
	i := 0
	for i < len(s) && (isNameStart(s[i]) || '0' <= s[i] && s[i] <= '9') {
		i++
	}
	return i
}

func numberLength(s string) int {
	i := 0
	digits := func() {
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
	}
	digits()
	if i+1 < len(s) && s[i] == '.' && '0' <= s[i+1] && s[i+1] <= '9' {
		i++
		digits()
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		back := i
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		from := i
		if digits(); i == from {
			i = back
		}
	}
	return i
}
