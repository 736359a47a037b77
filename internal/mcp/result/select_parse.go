package result

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

const maxNested = 100 // maximum nesting depth of expressions

// parser builds the syntax tree by precedence.
type parser struct {
	lexer
	nested    int
	variables []string
}

// unsupported maps unsupported tokens of jq to their descriptions.
var unsupported = map[string]string{
	"..": "recursion", "recurse": "recursion", "def": "definitions", "reduce": "loops", "foreach": "loops", "while": "loops", "until": "loops",
	"repeat": "loops", "range": "loops", "label": "jumps", "break": "jumps", "input": "other input", "inputs": "other input", "env": "the environment",
	"now": "the clock", "import": "modules", "include": "modules", "@": "formats", "=": "changes", "|=": "changes", "+=": "changes", "-=": "changes",
	"*=": "changes", "/=": "changes", "%=": "changes", "//=": "changes",
}

// keywords are the words that end an expression.
var keywords = []string{"then", "elif", "else", "end", "as", "and", "or", "catch"}

func (p *parser) parseExpression() (*node, error) {
	if err := p.readToken(); err != nil {
		return nil, err
	}
	if p.kind == tokenEnd {
		return nil, p.syntaxError("the expression is empty")
	}
	n, err := p.parsePipe()
	if err == nil && p.kind != tokenEnd {
		err = p.unexpectedTokenError()
	}
	return n, err
}

func (p *parser) unexpectedTokenError() error {
	why, ok := unsupported[p.word]
	switch {
	case p.kind == tokenEnd:
		return p.syntaxError("something is missing")
	case ok && why != "" && p.kind != tokenField && p.kind != tokenString:
		return p.syntaxError("'%s' is not taken: no %s here", p.word, why)
	}
	return p.syntaxError("unexpected '%s'", wirejson.ClipText(p.word, 40))
}

// expectToken skips a required token.
func (p *parser) expectToken(kind string) error {
	if p.kind != kind && !(p.kind == tokenName && p.word == kind) {
		if p.kind == tokenEnd {
			return p.syntaxError("'%s' is missing", kind)
		}
		return p.unexpectedTokenError()
	}
	return p.readToken()
}

// peekIs reports whether the next token is this keyword or operator.
func (p *parser) peekIs(word string) bool {
	return p.kind == word || p.kind == tokenName && p.word == word
}

// acceptToken skips a keyword or operator if it is next.
func (p *parser) acceptToken(word string) (bool, error) {
	if !p.peekIs(word) {
		return false, nil
	}
	return true, p.readToken()
}

// parsePipe parses a | b, and a as $name | b.
func (p *parser) parsePipe() (*node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.syntaxError("expressions are nested too deep")
	}
	defer func() { p.nested-- }()
	a, err := p.parseComma()
	if err != nil {
		return nil, err
	}
	if bound, err := p.acceptToken("as"); err != nil {
		return nil, err
	} else if bound {
		return p.parseBinding(a)
	}
	if more, err := p.acceptToken("|"); !more || err != nil {
		return a, err
	}
	b, err := p.parsePipe()
	return &node{op: opPipe, a: a, b: b}, err
}

func (p *parser) parseBinding(a *node) (*node, error) {
	name := p.word
	if p.kind != tokenVariable {
		return nil, p.syntaxError("only 'as $name' is taken")
	}
	if err := p.readToken(); err != nil {
		return nil, err
	}
	if err := p.expectToken("|"); err != nil {
		return nil, err
	}
	p.variables = append(p.variables, name)
	b, err := p.parsePipe()
	p.variables = p.variables[:len(p.variables)-1]
	return &node{op: opBind, name: name, a: a, b: b}, err
}

// levels contains the operators by ascending precedence.
var levels = []struct {
	op    nodeOp
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

func (p *parser) parseComma() (*node, error) { return p.parsePrecedenceLevel(0) }

// parsePrecedenceLevel parses the operators of a level and of higher ones.
func (p *parser) parsePrecedenceLevel(i int) (*node, error) {
	if i == len(levels) {
		return p.parsePostfix()
	}
	l := levels[i]
	a, err := p.parsePrecedenceLevel(i + 1)
	for err == nil {
		at := slices.IndexFunc(l.words, p.peekIs)
		if at < 0 {
			return a, nil
		}
		if err = p.readToken(); err != nil {
			return nil, err
		}
		var b *node
		if l.right {
			if p.nested++; p.nested > maxNested {
				return nil, p.syntaxError("expressions are nested too deep")
			}
			b, err = p.parsePrecedenceLevel(i)
			p.nested--
		} else {
			b, err = p.parsePrecedenceLevel(i + 1)
		}
		a = &node{op: l.op, name: l.words[at], a: a, b: b}
		if err == nil && l.once && slices.ContainsFunc(l.words, p.peekIs) {
			return nil, p.syntaxError("comparisons need parentheses")
		}
	}
	return nil, err
}

// parsePostfix parses a term and its suffixes: .name, [..], ?.
func (p *parser) parsePostfix() (*node, error) {
	if negative, err := p.acceptToken("-"); err != nil {
		return nil, err
	} else if negative {
		if p.nested++; p.nested > maxNested {
			return nil, p.syntaxError("expressions are nested too deep")
		}
		a, err := p.parsePostfix()
		p.nested--
		return &node{op: opNegative, a: a}, err
	}
	step := p.kind == tokenField || p.kind == "." // the term is a path step
	n, err := p.parseTerm()
	for err == nil {
		switch p.kind {
		case tokenField:
			step, n = true, newFieldNode(n, p.word)
			err = p.readToken()
		case "[":
			step = true
			n, err = p.parseBrackets(n)
		case "?":
			if step && n.op != opSame {
				n.optional = true
			} else {
				n = &node{op: opTry, a: n}
			}
			err = p.readToken()
		case ".": // ."name", .[…]
			if err = p.readToken(); err == nil {
				switch p.kind {
				case "[":
				case tokenString:
					var key *node
					key, err = p.parseString()
					step, n = true, &node{op: opIndex, a: n, b: key}
				default:
					err = p.unexpectedTokenError()
				}
			}
		default:
			return n, nil
		}
	}
	return nil, err
}

// parseBrackets parses [], [b], [b:c].
func (p *parser) parseBrackets(of *node) (n *node, err error) {
	if err = p.readToken(); err != nil {
		return nil, err
	}
	if each, err := p.acceptToken("]"); each || err != nil {
		return &node{op: opEach, a: of}, err
	}
	var from, to *node
	if p.kind != ":" {
		if from, err = p.parsePipe(); err != nil {
			return nil, err
		}
		if index, err := p.acceptToken("]"); index || err != nil {
			return &node{op: opIndex, a: of, b: from}, err
		}
	}
	if err = p.expectToken(":"); err != nil {
		return nil, err
	}
	if p.kind != "]" {
		if to, err = p.parsePipe(); err != nil {
			return nil, err
		}
	} else if from == nil {
		return nil, p.unexpectedTokenError()
	}
	return &node{op: opSlice, a: of, b: from, c: to}, p.expectToken("]")
}

// parseTerm parses a primary expression.
func (p *parser) parseTerm() (*node, error) {
	word := p.word
	switch p.kind {
	case ".":
		if err := p.readToken(); err != nil {
			return nil, err
		}
		if p.kind == tokenString {
			key, err := p.parseString()
			return &node{op: opIndex, a: &node{op: opSame}, b: key}, err
		}
		return &node{op: opSame}, nil
	case tokenField:
		return newFieldNode(&node{op: opSame}, word), p.readToken()
	case tokenVariable:
		if !slices.Contains(p.variables, word) {
			return nil, p.syntaxError("unknown variable '$%s'", word)
		}
		return &node{op: opVariable, name: word}, p.readToken()
	case tokenNumber:
		if wirejson.Check([]byte(word), wirejson.Limits{}) != nil {
			return nil, p.syntaxError("'%s' is not a number", word)
		}
		return newLiteralNode([]byte(word)), p.readToken()
	case tokenString:
		return p.parseString()
	case "(":
		if err := p.readToken(); err != nil {
			return nil, err
		}
		n, err := p.parsePipe()
		if err != nil {
			return nil, err
		}
		return n, p.expectToken(")")
	case "[":
		if err := p.readToken(); err != nil {
			return nil, err
		}
		if empty, err := p.acceptToken("]"); empty || err != nil {
			return newLiteralNode([]byte("[]")), err
		}
		n, err := p.parsePipe()
		if err != nil {
			return nil, err
		}
		return &node{op: opArray, a: n}, p.expectToken("]")
	case "{":
		return p.parseObject()
	case tokenName:
		return p.parseNamed()
	}
	return nil, p.unexpectedTokenError()
}

// parseNamed parses an expression that starts with a name: a literal, if, try or a function.
func (p *parser) parseNamed() (*node, error) {
	name := p.word
	if slices.Contains(keywords, name) {
		return nil, p.unexpectedTokenError()
	}
	if why := unsupported[name]; why != "" {
		return nil, p.unexpectedTokenError()
	}
	start := p.start
	if err := p.readToken(); err != nil {
		return nil, err
	}
	switch name {
	case "true", "false", "null":
		return newLiteralNode([]byte(name)), nil
	case "if":
		return p.parseIf()
	case "try":
		return p.parseTry()
	}
	var args []*node
	if p.kind == "(" {
		for args == nil || p.kind == ";" {
			if err := p.readToken(); err != nil {
				return nil, err
			}
			arg, err := p.parsePipe()
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		if err := p.expectToken(")"); err != nil {
			return nil, err
		}
	}
	f := functions[fmt.Sprintf("%s/%d", name, len(args))]
	if f == nil {
		p.start = start
		if known := aritiesText(name); known != "" {
			return nil, p.syntaxError("%s has %s, not %d", name, known, len(args))
		}
		return nil, p.syntaxError("unknown function '%s'", wirejson.ClipText(name, 40))
	}
	return &node{op: opCall, call: f, list: args}, nil
}

// aritiesText returns the argument counts of a function, for an error.
func aritiesText(name string) string {
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

// parseIf parses if a then b elif … else c end.
func (p *parser) parseIf() (*node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.syntaxError("expressions are nested too deep")
	}
	defer func() { p.nested-- }()
	n := &node{op: opIf, c: &node{op: opSame}}
	var err error
	if n.a, err = p.parsePipe(); err != nil {
		return nil, err
	}
	if err = p.expectToken("then"); err != nil {
		return nil, err
	}
	if n.b, err = p.parsePipe(); err != nil {
		return nil, err
	}
	if another, err := p.acceptToken("elif"); err != nil {
		return nil, err
	} else if another {
		n.c, err = p.parseIf()
		return n, err
	}
	if other, err := p.acceptToken("else"); err != nil {
		return nil, err
	} else if other {
		if n.c, err = p.parsePipe(); err != nil {
			return nil, err
		}
	}
	return n, p.expectToken("end")
}

func (p *parser) parseTry() (*node, error) {
	n := &node{op: opTry}
	var err error
	if n.a, err = p.parsePostfix(); err != nil {
		return nil, err
	}
	if caught, err := p.acceptToken("catch"); err != nil {
		return nil, err
	} else if caught {
		if n.b, err = p.parsePostfix(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// parseObject parses {a, "b": c, (d): e, $f}.
func (p *parser) parseObject() (*node, error) {
	n := &node{op: opObject}
	err := p.readToken()
	for err == nil && p.kind != "}" {
		var key, value *node
		switch p.kind {
		case tokenName:
			key, value = newLiteralNode(wirejson.AppendString(nil, p.word)), newFieldNode(&node{op: opSame}, p.word)
			err = p.readToken()
		case tokenVariable:
			if value, err = p.parseTerm(); err == nil {
				key = newLiteralNode(wirejson.AppendString(nil, value.name))
			}
		case tokenNumber:
			err = p.syntaxError("the name of a member must be a string")
		case tokenString:
			if key, err = p.parseString(); err == nil {
				value = &node{op: opIndex, a: &node{op: opSame}, b: key}
			}
		case "(":
			if key, err = p.parseTerm(); err == nil && p.kind != ":" {
				err = p.syntaxError("':' is missing")
			}
		default:
			err = p.unexpectedTokenError()
		}
		if err != nil {
			return nil, err
		}
		if given, err := p.acceptToken(":"); err != nil {
			return nil, err
		} else if given && value != nil && value.op == opVariable {
			return nil, p.syntaxError("a member cannot be named by a variable: write ($name)")
		} else if given {
			if value, err = p.parseMemberValue(); err != nil {
				return nil, err
			}
		}
		n.list = append(n.list, key, value)
		if p.kind != "}" {
			err = p.expectToken(",")
		}
	}
	if err != nil {
		return nil, err
	}
	return n, p.expectToken("}")
}

// parseMemberValue parses the value of a member: terms with operators, but without a comma. A pipe is allowed, as in
// gojq.
func (p *parser) parseMemberValue() (*node, error) {
	a, err := p.parsePrecedenceLevel(1)
	for err == nil && p.kind == "|" {
		if err = p.readToken(); err != nil {
			break
		}
		var b *node
		b, err = p.parsePrecedenceLevel(1)
		a = &node{op: opPipe, a: a, b: b}
	}
	return a, err
}

// parseString parses a string with \(…) interpolations. The position of the lexer is after the opening quote.
func (p *parser) parseString() (*node, error) {
	n := &node{op: opText}
	start, from := p.start, p.at
	flush := func(to int) error {
		if to == from {
			return nil
		}
		raw := []byte(`"` + p.lexer.text[from:to] + `"`)
		if err := wirejson.Check(raw, wirejson.Limits{}); err != nil {
			p.start = start
			return p.syntaxError("the string is not one of JSON")
		}
		n.list = append(n.list, newLiteralNode(raw))
		return nil
	}
	for i := p.at; ; {
		switch {
		case i >= len(p.lexer.text):
			p.start = start
			return nil, p.syntaxError("a string has no end")
		case p.lexer.text[i] == '"':
			if err := flush(i); err != nil {
				return nil, err
			}
			p.at = i + 1
			return n.simplifyString(), p.readToken()
		case strings.HasPrefix(p.lexer.text[i:], `\(`):
			if err := flush(i); err != nil {
				return nil, err
			}
			p.at = i + 2
			if err := p.readToken(); err != nil {
				return nil, err
			}
			part, err := p.parsePipe()
			if err != nil {
				return nil, err
			}
			if p.kind != ")" {
				return nil, p.syntaxError("')' is missing")
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
