package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Bounds on the patterns of one schema. A pattern is compiled to a program
// that a match walks through once for every character.
const (
	maxPattern      = 1024    // characters of one
	maxPatternBytes = 8 << 10 // of all
	maxProgram      = 20_000  // instructions of all
)

// patterns compiles the patterns of one schema, each once.
type patterns struct {
	known map[string]*pattern
	bytes int
	size  int
}

func (p *patterns) compile(text string) (*pattern, error) {
	if known, ok := p.known[text]; ok {
		return known, nil
	}
	if p.bytes += len(text); len(text) > maxPattern || p.bytes > maxPatternBytes {
		return nil, errors.New("the patterns are too long")
	}
	translated := translate(text)
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern %s cannot be used: %w", quoted([]byte(text)), err)
	}
	size := programSize(tree)
	if p.size += size; p.size > maxProgram {
		return nil, errors.New("the patterns are too large")
	}
	re, err := regexp.Compile(translated)
	if err != nil {
		return nil, fmt.Errorf("the pattern %s cannot be used: %w", quoted([]byte(text)), err)
	}
	if p.known == nil {
		p.known = make(map[string]*pattern)
	}
	compiled := &pattern{re: re, text: text, size: size}
	p.known[text] = compiled
	return compiled, nil
}

// programSize estimates how many instructions a pattern becomes: repetitions
// are written out.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		size += programSize(sub)
		if size > maxProgram {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxProgram+1)
}

// translate rewrites what ECMA-262, the dialect of JSON Schema, spells
// otherwise than RE2: \uXXXX, \u{X} and \cX.
func translate(text string) string {
	if !strings.Contains(text, `\u`) && !strings.Contains(text, `\c`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		r, size := escapedRune(text[i:])
		if size == 0 {
			out.WriteString(text[i : i+2])
			i++
			continue
		}
		out.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
		i += size - 1
	}
	return out.String()
}

// escapedRune reads one of the escapes that are translated; size is 0 for
// any other.
func escapedRune(s string) (r rune, size int) {
	switch {
	case s[1] == 'c' && len(s) > 2 && (s[2]|0x20) >= 'a' && (s[2]|0x20) <= 'z':
		return rune(s[2] & 31), 3
	case strings.HasPrefix(s, `\u{`):
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0
		}
		n, err := strconv.ParseUint(s[3:end], 16, 21)
		if err != nil {
			return 0, 0
		}
		return rune(n), end + 1
	case s[1] == 'u':
		r = hex4([]byte(s[2:]))
		if r < 0 {
			return 0, 0
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(s[6:], `\u`) {
			if pair := utf16.DecodeRune(r, hex4([]byte(s[8:]))); pair != '\uFFFD' {
				return pair, 12
			}
		}
		return r, 6
	}
	return 0, 0
}
