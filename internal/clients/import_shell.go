package clients

import (
	"strings"
	"unicode"
)

// word is a word of a command line.
type word struct {
	text string
	at   place
}

// words splits a command line as a shell does, into words without their quotes. A
// variable becomes ${NAME}, as clients' files have it. What a shell would do
// beyond that, such as a second command, is a mistake.
func words(line string) ([]word, error) {
	s := splitter{column: 1, line: 1}
	for _, r := range line {
		if err := s.take(r); err != nil {
			return nil, err
		}
		if s.column++; r == '\n' {
			s.line, s.column = s.line+1, 1
		}
	}
	if s.quote != 0 || s.escaped {
		return nil, &mistake{s.opened, "the quote at this place is not closed", "close it"}
	}
	s.end()
	return s.all, nil
}

// splitter is what of a command line was read so far.
type splitter struct {
	all          []word
	line, column int
	word         strings.Builder
	begun        bool  // a word, which may be empty
	begin        place // of it
	quote        rune  // 0 outside of quotes
	opened       place // of the quote
	escaped      bool
	variable     bool // a $ was read
	named        bool // and letters after it
}

func (s *splitter) at() place { return place{s.line, s.column} }

func (s *splitter) start() {
	if !s.begun {
		s.begun, s.begin = true, s.at()
	}
}

// close ends the name of a variable.
func (s *splitter) close() {
	if s.named {
		s.word.WriteByte('}')
	}
	s.variable, s.named = false, false
}

func (s *splitter) end() {
	s.close()
	if s.begun {
		s.all = append(s.all, word{s.word.String(), s.begin})
	}
	s.word.Reset()
	s.begun = false
}

func (s *splitter) take(r rune) error {
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
			return &mistake{s.at(), "a command within the command is not run", "write what it says"}
		}
		s.close()
	}
	switch {
	case s.escaped:
		s.escaped = false
		if r == '\n' || r == '\r' {
			return nil // the line goes on
		}
		s.start()
		s.word.WriteRune(r)
	case s.quote == '\'' && r != '\'':
		s.word.WriteRune(r)
	case r == '\\':
		s.escaped, s.opened = true, s.at()
	case r == s.quote:
		s.quote = 0
	case s.quote == 0 && (r == '\'' || r == '"'):
		s.start()
		s.quote, s.opened = r, s.at()
	case r == '$':
		s.start()
		s.variable = true
		s.word.WriteByte('$')
	case r == '`':
		return &mistake{s.at(), "a command within the command is not run", "write what it says"}
	case s.quote != 0:
		s.word.WriteRune(r)
	case unicode.IsSpace(r):
		s.end()
	case strings.ContainsRune("|&;<>()", r):
		return &mistake{s.at(), "one command alone can be a server: " + quote(string(r)) + " joins it with another, or with a file", "give the one command that starts the server"}
	default:
		s.start()
		s.word.WriteRune(r)
	}
	return nil
}
