package result

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

const maxNested = 100 // of nested expressions

// parser builds the syntax tree by precedence.
type parser struct {
	lexer
	nested    int
	variables []string
}

// unsupported maps unsupported tokens of jq to what they are.
var unsupported = map[string]string{
	"..": "recursion", "recurse": "recursion", "def": "definitions", "reduce": "loops", "foreach": "loops", "while": "loops", "until": "loops",
	"repeat": "loops", "range": "loops", "label": "jumps", "break": "jumps", "input": "other input", "inputs": "other input", "env": "the environment",
	"now": "the clock", "import": "modules", "include": "modules", "@": "formats", "=": "changes", "|=": "changes", "+=": "changes", "-=": "changes",
	"*=": "changes", "/=": "changes", "%=": "changes", "//=": "changes",
}

// keywords end an expression.
var keywords = []string{"then", "elif", "else", "end", "as", "and", "or", "catch"}

func (p *parser) parse() (*node, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.kind == tokenEnd {
		return nil, p.wrong("there is no expression")
	}
	n, err := p.pipe()
	if err == nil && p.kind != tokenEnd {
		err = p.unexpected()
	}
	return n, err
}

func (p *parser) unexpected() error {
	why, ok := unsupported[p.word]
	switch {
	case p.kind == tokenEnd:
		return p.wrong("something is missing")
	case ok && why != "" && p.kind != tokenField && p.kind != tokenString:
		return p.wrong("'%s' is not taken: no %s here", p.word, why)
	}
	return p.wrong("unexpected '%s'", wirejson.Clip(p.word, 40))
}

// expect skips a required token.
func (p *parser) expect(kind string) error {
	if p.kind != kind && !(p.kind == tokenName && p.word == kind) {
		if p.kind == tokenEnd {
			return p.wrong("'%s' is missing", kind)
		}
		return p.unexpected()
	}
	return p.next()
}

// peekIs reports whether the next token is this keyword or operator.
func (p *parser) peekIs(word string) bool {
	return p.kind == word || p.kind == tokenName && p.word == word
}

// accept skips a keyword or operator if it is next.
func (p *parser) accept(word string) (bool, error) {
	if !p.peekIs(word) {
		return false, nil
	}
	return true, p.next()
}

// pipe parses a | b, and a as $name | b.
func (p *parser) pipe() (*node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.wrong("expressions are nested too deep")
	}
	defer func() { p.nested-- }()
	a, err := p.comma()
	if err != nil {
		return nil, err
	}
	if bound, err := p.accept("as"); err != nil {
		return nil, err
	} else if bound {
		return p.bind(a)
	}
	if more, err := p.accept("|"); !more || err != nil {
		return a, err
	}
	b, err := p.pipe()
	return &node{op: opPipe, a: a, b: b}, err
}

func (p *parser) bind(a *node) (*node, error) {
	name := p.word
	if p.kind != tokenVariable {
		return nil, p.wrong("only 'as $name' is taken")
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if err := p.expect("|"); err != nil {
		return nil, err
	}
	p.variables = append(p.variables, name)
	b, err := p.pipe()
	p.variables = p.variables[:len(p.variables)-1]
	return &node{op: opBind, name: name, a: a, b: b}, err
}

// levels are the operators by ascending precedence.
var levels = []struct {
	op    op
	words []string
	right bool // right-associative: a op (b op c)
	once  bool // not associative: no a op b op c
}{
	{opComma, []string{","}, false, false},
	{opAlternative, []string{"//"}, true, false},
	{opOr, []string{"or"}, false, false},
	{opAnd, []string{"and"}, false, false},
	{opCompare, []string{"==", "!=", "<", "<=", ">", ">="}, false, true},
	{opArithmetic, []string{"+", "-"}, false, false},
	{opArithmetic, []string{"*", "/", "%"}, false, false},
}

func (p *parser) comma() (*node, error) { return p.level(0) }

// level parses the operators of a level and of higher ones.
func (p *parser) level(i int) (*node, error) {
	if i == len(levels) {
		return p.postfix()
	}
	l := levels[i]
	a, err := p.level(i + 1)
	for err == nil {
		at := slices.IndexFunc(l.words, p.peekIs)
		if at < 0 {
			return a, nil
		}
		if err = p.next(); err != nil {
			return nil, err
		}
		var b *node
		if l.right {
			if p.nested++; p.nested > maxNested {
				return nil, p.wrong("expressions are nested too deep")
			}
			b, err = p.level(i)
			p.nested--
		} else {
			b, err = p.level(i + 1)
		}
		a = &node{op: l.op, name: l.words[at], a: a, b: b}
		if err == nil && l.once && slices.ContainsFunc(l.words, p.peekIs) {
			return nil, p.wrong("comparisons need parentheses")
		}
	}
	return nil, err
}

// postfix parses a term and its suffixes: .name, [..], ?.
func (p *parser) postfix() (*node, error) {
	if negative, err := p.accept("-"); err != nil {
		return nil, err
	} else if negative {
		if p.nested++; p.nested > maxNested {
			return nil, p.wrong("expressions are nested too deep")
		}
		a, err := p.postfix()
		p.nested--
		return &node{op: opNegative, a: a}, err
	}
	step := p.kind == tokenField || p.kind == "." // the term is a path step
	n, err := p.term()
	for err == nil {
		switch p.kind {
		case tokenField:
			step, n = true, field(n, p.word)
			err = p.next()
		case "[":
			step = true
			n, err = p.brackets(n)
		case "?":
			if step && n.op != opSame {
				n.optional = true
			} else {
				n = &node{op: opTry, a: n}
			}
			err = p.next()
		case ".": // ."name", .[…]
			if err = p.next(); err == nil {
				switch p.kind {
				case "[":
				case tokenString:
					var key *node
					key, err = p.text()
					step, n = true, &node{op: opIndex, a: n, b: key}
				default:
					err = p.unexpected()
				}
			}
		default:
			return n, nil
		}
	}
	return nil, err
}

// brackets parses [], [b], [b:c].
func (p *parser) brackets(of *node) (n *node, err error) {
	if err = p.next(); err != nil {
		return nil, err
	}
	if each, err := p.accept("]"); each || err != nil {
		return &node{op: opEach, a: of}, err
	}
	var from, to *node
	if p.kind != ":" {
		if from, err = p.pipe(); err != nil {
			return nil, err
		}
		if index, err := p.accept("]"); index || err != nil {
			return &node{op: opIndex, a: of, b: from}, err
		}
	}
	if err = p.expect(":"); err != nil {
		return nil, err
	}
	if p.kind != "]" {
		if to, err = p.pipe(); err != nil {
			return nil, err
		}
	} else if from == nil {
		return nil, p.unexpected()
	}
	return &node{op: opSlice, a: of, b: from, c: to}, p.expect("]")
}

// term parses a primary expression.
func (p *parser) term() (*node, error) {
	word := p.word
	switch p.kind {
	case ".":
		if err := p.next(); err != nil {
			return nil, err
		}
		if p.kind == tokenString {
			key, err := p.text()
			return &node{op: opIndex, a: &node{op: opSame}, b: key}, err
		}
		return &node{op: opSame}, nil
	case tokenField:
		return field(&node{op: opSame}, word), p.next()
	case tokenVariable:
		if !slices.Contains(p.variables, word) {
			return nil, p.wrong("there is no variable '$%s'", word)
		}
		return &node{op: opVariable, name: word}, p.next()
	case tokenNumber:
		if wirejson.Check([]byte(word), wirejson.Limits{}) != nil {
			return nil, p.wrong("'%s' is no number", word)
		}
		return literal([]byte(word)), p.next()
	case tokenString:
		return p.text()
	case "(":
		if err := p.next(); err != nil {
			return nil, err
		}
		n, err := p.pipe()
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case "[":
		if err := p.next(); err != nil {
			return nil, err
		}
		if empty, err := p.accept("]"); empty || err != nil {
			return literal([]byte("[]")), err
		}
		n, err := p.pipe()
		if err != nil {
			return nil, err
		}
		return &node{op: opArray, a: n}, p.expect("]")
	case "{":
		return p.object()
	case tokenName:
		return p.named()
	}
	return nil, p.unexpected()
}

// rawMember parses an expression that starts with a name: a literal, if, try or a function.
func (p *parser) named() (*node, error) {
	name := p.word
	if slices.Contains(keywords, name) {
		return nil, p.unexpected()
	}
	if why := unsupported[name]; why != "" {
		return nil, p.unexpected()
	}
	start := p.start
	if err := p.next(); err != nil {
		return nil, err
	}
	switch name {
	case "true", "false", "null":
		return literal([]byte(name)), nil
	case "if":
		return p.condition()
	case "try":
		return p.try()
	}
	var args []*node
	if p.kind == "(" {
		for args == nil || p.kind == ";" {
			if err := p.next(); err != nil {
				return nil, err
			}
			arg, err := p.pipe()
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	f := functions[fmt.Sprintf("%s/%d", name, len(args))]
	if f == nil {
		p.start = start
		if known := arities(name); known != "" {
			return nil, p.wrong("%s has %s, not %d", name, known, len(args))
		}
		return nil, p.wrong("there is no function '%s' here", wirejson.Clip(name, 40))
	}
	return &node{op: opCall, call: f, list: args}, nil
}

// arities returns the argument counts of a function, for an error.
func arities(name string) string {
	var counts []string
	for n := range 3 {
		if functions[fmt.Sprintf("%s/%d", name, n)] != nil {
			counts = append(counts, fmt.Sprint(n))
		}
	}
	if counts == nil {
		return ""
	}
	return strings.Join(counts, " or ") + " arguments"
}

// condition parses if a then b elif … else c end.
func (p *parser) condition() (*node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.wrong("expressions are nested too deep")
	}
	defer func() { p.nested-- }()
	n := &node{op: opIf, c: &node{op: opSame}}
	var err error
	if n.a, err = p.pipe(); err != nil {
		return nil, err
	}
	if err = p.expect("then"); err != nil {
		return nil, err
	}
	if n.b, err = p.pipe(); err != nil {
		return nil, err
	}
	if another, err := p.accept("elif"); err != nil {
		return nil, err
	} else if another {
		n.c, err = p.condition()
		return n, err
	}
	if other, err := p.accept("else"); err != nil {
		return nil, err
	} else if other {
		if n.c, err = p.pipe(); err != nil {
			return nil, err
		}
	}
	return n, p.expect("end")
}

func (p *parser) try() (*node, error) {
	n := &node{op: opTry}
	var err error
	if n.a, err = p.postfix(); err != nil {
		return nil, err
	}
	if caught, err := p.accept("catch"); err != nil {
		return nil, err
	} else if caught {
		if n.b, err = p.postfix(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// object parses {a, "b": c, (d): e, $f}.
func (p *parser) object() (*node, error) {
	n := &node{op: opObject}
	err := p.next()
	for err == nil && p.kind != "}" {
		var key, value *node
		switch p.kind {
		case tokenName:
			key, value = literal(wirejson.AppendString(nil, p.word)), field(&node{op: opSame}, p.word)
			err = p.next()
		case tokenVariable:
			if value, err = p.term(); err == nil {
				key = literal(wirejson.AppendString(nil, value.name))
			}
		case tokenNumber:
			err = p.wrong("the name of a member must be a string")
		case tokenString:
			if key, err = p.text(); err == nil {
				value = &node{op: opIndex, a: &node{op: opSame}, b: key}
			}
		case "(":
			if key, err = p.term(); err == nil && p.kind != ":" {
				err = p.wrong("':' is missing")
			}
		default:
			err = p.unexpected()
		}
		if err != nil {
			return nil, err
		}
		if given, err := p.accept(":"); err != nil {
			return nil, err
		} else if given && value != nil && value.op == opVariable {
			return nil, p.wrong("a member cannot be named by a variable: write ($name)")
		} else if given {
			if value, err = p.memberValue(); err != nil {
				return nil, err
			}
		}
		n.list = append(n.list, key, value)
		if p.kind != "}" {
			err = p.expect(",")
		}
	}
	if err != nil {
		return nil, err
	}
	return n, p.expect("}")
}

// memberValue parses the value of a member: terms with operators, but no comma. A pipe is allowed, as in
// gojq.
func (p *parser) memberValue() (*node, error) {
	a, err := p.level(1)
	for err == nil && p.kind == "|" {
		if err = p.next(); err != nil {
			break
		}
		var b *node
		b, err = p.level(1)
		a = &node{op: opPipe, a: a, b: b}
	}
	return a, err
}

// text parses a string with \(…) interpolations. The lexer is after the quote.
func (p *parser) text() (*node, error) {
	n := &node{op: opText}
	start, from := p.start, p.at
	flush := func(to int) error {
		if to == from {
			return nil
		}
		raw := []byte(`"` + p.lexer.text[from:to] + `"`)
		if err := wirejson.Check(raw, wirejson.Limits{}); err != nil {
			p.start = start
			return p.wrong("the string is not one of JSON")
		}
		n.list = append(n.list, literal(raw))
		return nil
	}
	for i := p.at; ; {
		switch {
		case i >= len(p.lexer.text):
			p.start = start
			return nil, p.wrong("a string has no end")
		case p.lexer.text[i] == '"':
			if err := flush(i); err != nil {
				return nil, err
			}
			p.at = i + 1
			return n.plain(), p.next()
		case strings.HasPrefix(p.lexer.text[i:], `\(`):
			if err := flush(i); err != nil {
				return nil, err
			}
			p.at = i + 2
			if err := p.next(); err != nil {
				return nil, err
			}
			part, err := p.pipe()
			if err != nil {
				return nil, err
			}
			if p.kind != ")" {
				return nil, p.wrong("')' is missing")
			}
			n.list = append(n.list, part)
			i, from = p.at, p.at
		case p.lexer.text[i] == '\\':
			i += 2
		default:
			i++
		}
	}
}
