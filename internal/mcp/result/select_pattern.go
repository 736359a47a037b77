package result

import (
	"io"
	"regexp"
	"regexp/syntax"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// The limits of regular expressions.
const (
	maxPatterns     = 16
	maxPatternText  = 500
	maxInstructions = 10_000    // per pattern, with expanded repetitions
	maxAtOnce       = 256 << 10 // maximum work between two checks of the time limit
)

// evalRegexpTest reports whether a regular expression (RE2) matches.
func (r *evaluation) evalRegexpTest(in, expr, flags []byte) ([]byte, error) {
	if kindName(in) != "string" || kindName(expr) != "string" {
		return nil, newDataError("%s cannot be matched by %s", kindName(in), kindName(expr))
	}
	p := r.patterns[patternKey{string(expr), string(flags)}]
	if p == nil {
		var err error
		if p, err = r.compilePattern(expr, flags); err != nil {
			return nil, err
		}
	}
	text, _ := wirejson.String(in)
	found, err := r.matchPattern(p, text)
	return boolJSON(found), err
}

// compilePattern compiles and caches a pattern.
func (r *evaluation) compilePattern(expr, flags []byte) (*compiledPattern, error) {
	text, _ := wirejson.String(expr)
	if flags != nil && string(flags) != "null" {
		given, ok := wirejson.String(flags)
		if !ok || strings.Trim(given, "gisx") != "" || strings.Contains(given, "x") {
			return nil, newDataError("the flags of test are i and s")
		}
		if given = strings.ReplaceAll(given, "g", ""); given != "" {
			text = "(?" + given + ")" + text
		}
	}
	if len(text) > maxPatternText || len(r.patterns) >= maxPatterns {
		return nil, ErrLimit
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, newDataError("a regular expression is wrong")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, newDataError("a regular expression is wrong")
	}
	p := &compiledPattern{instructions: len(program.Inst)}
	if p.instructions > maxInstructions {
		return nil, ErrLimit
	}
	if err := r.chargeOutput(400*p.instructions + 1<<16); err != nil {
		return nil, err
	}
	if p.Regexp, err = regexp.Compile(text); err != nil {
		return nil, newDataError("a regular expression is wrong")
	}
	if r.patterns == nil {
		r.patterns = map[patternKey]*compiledPattern{}
	}
	r.patterns[patternKey{string(expr), string(flags)}] = p
	return p, nil
}

// matchPattern reports whether a pattern matches a text. Package regexp cannot be interrupted. So a long text is read
// from a reader that ends early at the limits.
func (r *evaluation) matchPattern(p *compiledPattern, text string) (bool, error) {
	each := 8 + p.instructions
	_, literal := p.LiteralPrefix()
	if literal {
		each = 8
	}
	if literal || len(text)*each <= maxAtOnce {
		if err := r.chargeWork(len(text) * each); err != nil {
			return false, err
		}
		return p.MatchString(text), nil
	}
	read := &boundedTextReader{run: r, each: each, text: strings.NewReader(text)}
	found := p.MatchReader(read)
	return found && read.err == nil, read.err
}

// boundedTextReader is a text reader that ends at the limits of an evaluation.
type boundedTextReader struct {
	run           *evaluation
	text          *strings.Reader
	each, pending int // work per character; work that is not yet counted
	err           error
}

func (b *boundedTextReader) ReadRune() (rune, int, error) {
	if b.pending += b.each; b.pending > 1<<14 {
		if b.err = b.run.chargeWork(b.pending); b.err != nil {
			return 0, 0, io.EOF
		}
		b.pending = 0
	}
	return b.text.ReadRune()
}
