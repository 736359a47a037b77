package result

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

const maxNested = 100 // of expressions in expressions

// parser makes a tree of words, by precedence.
type parser struct {
	lexer
	nested    int
	variables []string
}

// refused are words of jq that are not taken, and why.
var refused = map[string]string{
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
	if p.kind == wordEnd {
		return nil, p.wrong("there is no expression")
	}
	n, err := p.pipe()
	if err == nil && p.kind != wordEnd {
		err = p.unexpected()
	}
	return n, err
}

func (p *parser) unexpected() error {
	why, ok := refused[p.word]
	switch {
	case p.kind == wordEnd:
		return p.wrong("something is missing")
	case ok && why != "" && p.kind != wordField && p.kind != wordString:
		return p.wrong("'%s' is not taken: no %s here", p.word, why)
	}
	return p.wrong("unexpected '%s'", wirejson.Clip(p.word, 40))
}

// want steps over a word that must come.
func (p *parser) want(kind string) error {
	if p.kind != kind && !(p.kind == wordName && p.word == kind) {
		if p.kind == wordEnd {
			return p.wrong("'%s' is missing", kind)
		}
		return p.unexpected()
	}
	return p.next()
}

// is reports whether this keyword or operator comes next.
func (p *parser) is(word string) bool {
	return p.kind == word || p.kind == wordName && p.word == word
}

// takes steps over a keyword or operator, if it comes next.
func (p *parser) takes(word string) (bool, error) {
	if !p.is(word) {
		return false, nil
	}
	return true, p.next()
}

// pipe reads a | b, and a as $name | b.
func (p *parser) pipe() (*node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.wrong("expressions are nested too deep")
	}
	defer func() { p.nested-- }()
	a, err := p.comma()
	if err != nil {
		return nil, err
	}
	if bound, err := p.takes("as"); err != nil {
		return nil, err
	} else if bound {
		return p.bind(a)
	}
	if more, err := p.takes("|"); !more || err != nil {
		return a, err
	}
	b, err := p.pipe()
	return &node{op: opPipe, a: a, b: b}, err
}

func (p *parser) bind(a *node) (*node, error) {
	name := p.word
	if p.kind != wordVariable {
		return nil, p.wrong("only 'as $name' is taken")
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if err := p.want("|"); err != nil {
		return nil, err
	}
	p.variables = append(p.variables, name)
	b, err := p.pipe()
	p.variables = p.variables[:len(p.variables)-1]
	return &node{op: opBind, name: name, a: a, b: b}, err
}

// levels are the operators by precedence, those that bind least first.
var levels = []struct {
	op    op
	words []string
	right bool // a op (b op c)
	once  bool // not a op b op c
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

// level reads the operators of a level, and those that bind more.
func (p *parser) level(i int) (*node, error) {
	if i == len(levels) {
		return p.postfix()
	}
	l := levels[i]
	a, err := p.level(i + 1)
	for err == nil {
		at := slices.IndexFunc(l.words, p.is)
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
		if err == nil && l.once && slices.ContainsFunc(l.words, p.is) {
			return nil, p.wrong("comparisons need parentheses")
		}
	}
	return nil, err
}

// postfix reads a term and what follows it: .name, [..], ?.
func (p *parser) postfix() (*node, error) {
	if negative, err := p.takes("-"); err != nil {
		return nil, err
	} else if negative {
		if p.nested++; p.nested > maxNested {
			return nil, p.wrong("expressions are nested too deep")
		}
		a, err := p.postfix()
		p.nested--
		return &node{op: opNegative, a: a}, err
	}
	step := p.kind == wordField || p.kind == "." // what comes before is a step, and no whole
	n, err := p.term()
	for err == nil {
		switch p.kind {
		case wordField:
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
				case wordString:
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

// brackets reads [], [b], [b:c].
func (p *parser) brackets(of *node) (n *node, err error) {
	if err = p.next(); err != nil {
		return nil, err
	}
	if each, err := p.takes("]"); each || err != nil {
		return &node{op: opEach, a: of}, err
	}
	var from, to *node
	if p.kind != ":" {
		if from, err = p.pipe(); err != nil {
			return nil, err
		}
		if index, err := p.takes("]"); index || err != nil {
			return &node{op: opIndex, a: of, b: from}, err
		}
	}
	if err = p.want(":"); err != nil {
		return nil, err
	}
	if p.kind != "]" {
		if to, err = p.pipe(); err != nil {
			return nil, err
		}
	} else if from == nil {
		return nil, p.unexpected()
	}
	return &node{op: opSlice, a: of, b: from, c: to}, p.want("]")
}

// term reads what operators stand between.
func (p *parser) term() (*node, error) {
	word := p.word
	switch p.kind {
	case ".":
		if err := p.next(); err != nil {
			return nil, err
		}
		if p.kind == wordString {
			key, err := p.text()
			return &node{op: opIndex, a: &node{op: opSame}, b: key}, err
		}
		return &node{op: opSame}, nil
	case wordField:
		return field(&node{op: opSame}, word), p.next()
	case wordVariable:
		if !slices.Contains(p.variables, word) {
			return nil, p.wrong("there is no variable '$%s'", word)
		}
		return &node{op: opVariable, name: word}, p.next()
	case wordNumber:
		if wirejson.Check([]byte(word), wirejson.Limits{}) != nil {
			return nil, p.wrong("'%s' is no number", word)
		}
		return literal([]byte(word)), p.next()
	case wordString:
		return p.text()
	case "(":
		if err := p.next(); err != nil {
			return nil, err
		}
		n, err := p.pipe()
		if err != nil {
			return nil, err
		}
		return n, p.want(")")
	case "[":
		if err := p.next(); err != nil {
			return nil, err
		}
		if empty, err := p.takes("]"); empty || err != nil {
			return literal([]byte("[]")), err
		}
		n, err := p.pipe()
		if err != nil {
			return nil, err
		}
		return &node{op: opArray, a: n}, p.want("]")
	case "{":
		return p.object()
	case wordName:
		return p.named()
	}
	return nil, p.unexpected()
}

// named reads what begins with a name: a literal, if, try, a function.
func (p *parser) named() (*node, error) {
	name := p.word
	if slices.Contains(keywords, name) {
		return nil, p.unexpected()
	}
	if why := refused[name]; why != "" {
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
		if err := p.want(")"); err != nil {
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

// arities says with how many arguments there is a function of that name.
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

// condition reads if a then b elif … else c end.
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
	if err = p.want("then"); err != nil {
		return nil, err
	}
	if n.b, err = p.pipe(); err != nil {
		return nil, err
	}
	if another, err := p.takes("elif"); err != nil {
		return nil, err
	} else if another {
		n.c, err = p.condition()
		return n, err
	}
	if other, err := p.takes("else"); err != nil {
		return nil, err
	} else if other {
		if n.c, err = p.pipe(); err != nil {
			return nil, err
		}
	}
	return n, p.want("end")
}

func (p *parser) try() (*node, error) {
	n := &node{op: opTry}
	var err error
	if n.a, err = p.postfix(); err != nil {
		return nil, err
	}
	if caught, err := p.takes("catch"); err != nil {
		return nil, err
	} else if caught {
		if n.b, err = p.postfix(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// object reads {a, "b": c, (d): e, $f}.
func (p *parser) object() (*node, error) {
	n := &node{op: opObject}
	err := p.next()
	for err == nil && p.kind != "}" {
		var key, value *node
		switch p.kind {
		case wordName:
			key, value = literal(wirejson.AppendString(nil, p.word)), field(&node{op: opSame}, p.word)
			err = p.next()
		case wordVariable:
			if value, err = p.term(); err == nil {
				key = literal(wirejson.AppendString(nil, value.name))
			}
		case wordNumber:
			err = p.wrong("the name of a member must be a string")
		case wordString:
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
		if given, err := p.takes(":"); err != nil {
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
			err = p.want(",")
		}
	}
	if err != nil {
		return nil, err
	}
	return n, p.want("}")
}

// memberValue reads the value of a member: terms with operators, but no comma. A pipe in
// it is taken, as gojq does.
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

// text reads a string, in which \(…) is an expression. The lexer is behind the quote.
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
