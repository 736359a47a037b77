package clients

import (
	"strings"
	"unicode"
)

// shellWord is a word of a command line.
type shellWord struct {
	text string
	at   position
}

// splitShellWords splits a command line into words without quotes, as a shell does. Variables become ${NAME}, as in
// clients' files. Other shell syntax, such as a second command, is an error.
func splitShellWords(line string) ([]shellWord, error) {
	s := shellSplitter{column: 1, line: 1}
	for _, r := range line {
		if err := s.addRune(r); err != nil {
			return nil, err
		}
		if s.column++; r == '\n' {
			s.line, s.column = s.line+1, 1
		}
	}
	if s.quote != 0 || s.escaped {
		return nil, &syntaxError{s.opened, "the quote at this place is not closed", "close it"}
	}
	s.endWord()
	return s.all, nil
}

// shellSplitter is the state of the split.
type shellSplitter struct {
	all          []shellWord
	line, column int
	word         strings.Builder
	begun        bool     // a word has begun; it may be empty
	begin        position // position of the word
	quote        rune     // 0 outside quotes
	opened       position // position of the opening quote
	escaped      bool
	variable     bool // the word contains a $
	named        bool // the $ is followed by letters
}

func (s *shellSplitter) currentPosition() position { return position{s.line, s.column} }

func (s *shellSplitter) startWord() {
	if !s.begun {
		s.begun, s.begin = true, s.currentPosition()
	}
}

// endVariable ends the name of a variable.
func (s *shellSplitter) endVariable() {
	if s.named {
		s.word.WriteByte('}')
	}
	s.variable, s.named = false, false
}

func (s *shellSplitter) endWord() {
	s.endVariable()
	if s.begun {
		s.all = append(s.all, shellWord{s.word.String(), s.begin})
	}
	s.word.Reset()
	s.begun = false
}

func (s *shellSplitter) addRune(r rune) error {
	isName := r == '_' || r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r))
	if s.variable {
		if isName {
			if !s.named {
				s.word.WriteByte('{')
			}
			s.named = true
			s.word.WriteRune(r)
			return nil
		}
		if !s.named && r == '(' {
			return &syntaxError{s.currentPosition(), "a command substitution is not supported", "write its value"}
		}
		s.endVariable()
	}
	switch {
	case s.escaped:
		s.escaped = false
		if r == '\n' || r == '\r' {
			return nil // a line continuation
		}
		s.startWord()
		s.word.WriteRune(r)
	case s.quote == '\'' && r != '\'':
		s.word.WriteRune(r)
	case r == '\\':
		s.escaped, s.opened = true, s.currentPosition()
	case r == s.quote:
		s.quote = 0
	case s.quote == 0 && (r == '\'' || r == '"'):
		s.startWord()
		s.quote, s.opened = r, s.currentPosition()
	case r == '$':
		s.startWord()
		s.variable = true
		s.word.WriteByte('$')
	case r == '`':
		return &syntaxError{s.currentPosition(), "a command substitution is not supported", "write its value"}
	case s.quote != 0:
		s.word.WriteRune(r)
	case unicode.IsSpace(r):
		s.endWord()
	case strings.ContainsRune("|&;<>()", r):
		return &syntaxError{s.currentPosition(), "one command alone can be a server: " + quoteClipped(string(r)) + " joins it with another, or with a file", "give the one command that starts the server"}
	default:
		s.startWord()
		s.word.WriteRune(r)
	}
	return nil
}
