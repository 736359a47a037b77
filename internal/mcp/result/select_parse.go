package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"mcpproxy/internal/mcp/wirejson"
)

const maxNested = 100 // maximum nesting depth of expressions

// compiler converts the syntax tree of gojq's parser. It accepts only what always ends.
type compiler struct {
	nested    int
	variables []string
}

// unsupported maps unsupported functions and terms to descriptions.
var unsupported = map[string]string{
	"recurse": "recursion", "while": "loops", "until": "loops", "repeat": "loops", "range": "loops", "input": "other input", "inputs": "other input",
	"env": "the environment", "now": "the clock",
}

var unsupportedTerms = map[gojq.TermType][2]string{
	gojq.TermTypeRecurse: {"..", "recursion"}, gojq.TermTypeReduce: {"reduce", "loops"}, gojq.TermTypeForeach: {"foreach", "loops"},
	gojq.TermTypeLabel: {"label", "jumps"}, gojq.TermTypeBreak: {"break", "jumps"}, gojq.TermTypeFormat: {"@", "formats"},
}

func newUnsupportedError(word, what string) error {
	return fmt.Errorf("'%s' is not supported: select has no %s", word, what)
}

// parseExpression parses an expression and converts it.
func parseExpression(text string) (*node, error) {
	query, err := gojq.Parse(text)
	if wrong, ok := errors.AsType[*gojq.ParseError](err); ok {
		start := max(wrong.Offset-len(wrong.Token), 0)
		return nil, fmt.Errorf("%s at character %d", wirejson.ClipText(err.Error(), 80), utf8.RuneCountInString(text[:start])+1)
	}
	if err != nil {
		return nil, err
	}
	return new(compiler).compileQuery(query)
}

// compileNested compiles a query within another one.
func (c *compiler) compileNested(q *gojq.Query) (*node, error) {
	if c.nested++; c.nested > maxNested {
		return nil, errors.New("expressions are nested too deep")
	}
	defer func() { c.nested-- }()
	return c.compileQuery(q)
}

func (c *compiler) compileQuery(q *gojq.Query) (*node, error) {
	switch {
	case q.Meta != nil || len(q.Imports) > 0:
		return nil, newUnsupportedError("import", "modules")
	case len(q.FuncDefs) > 0:
		return nil, newUnsupportedError("def", "definitions")
	case q.Term != nil:
		return c.compileTerm(q.Term)
	case q.Left == nil:
		return nil, errors.New("the expression is empty")
	}
	op := binaryOperation(q.Op)
	if op == opSame {
		return nil, newUnsupportedError(q.Op.String(), "changes")
	}
	a, err := c.compileQuery(q.Left)
	if err != nil {
		return nil, err
	}
	if len(q.Patterns) > 0 {
		return c.compileBinding(a, q)
	}
	b, err := c.compileNested(q.Right)
	return &node{op: op, name: q.Op.String(), a: a, b: b}, err
}

// binaryOperation returns the operation of an operator, or opSame for assignments.
func binaryOperation(op gojq.Operator) nodeOp {
	switch op {
	case gojq.OpPipe:
		return opPipe
	case gojq.OpComma:
		return opComma
	case gojq.OpAlt:
		return opAlternative
	case gojq.OpOr:
		return opOr
	case gojq.OpAnd:
		return opAnd
	case gojq.OpEq, gojq.OpNe, gojq.OpLt, gojq.OpLe, gojq.OpGt, gojq.OpGe:
		return opCompare
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		return opArithmetic
	}
	return opSame
}

// compileBinding compiles a as $name | b.
func (c *compiler) compileBinding(a *node, q *gojq.Query) (*node, error) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return nil, errors.New("only 'as $name' is taken")
	}
	name := q.Patterns[0].Name
	c.variables = append(c.variables, name)
	b, err := c.compileNested(q.Right)
	c.variables = c.variables[:len(c.variables)-1]
	return &node{op: opBind, name: name, a: a, b: b}, err
}

// compileTerm compiles a term with its suffixes: .name, [..], ?.
func (c *compiler) compileTerm(t *gojq.Term) (*node, error) {
	n, err := c.compilePrimary(t)
	step := t.Type == gojq.TermTypeIndex // n is a path step: ? ignores only values of the wrong kind
	for _, s := range t.SuffixList {
		if err != nil {
			return nil, err
		}
		switch {
		case s.Optional && step:
			n.optional = true
		case s.Optional:
			n = &node{op: opTry, a: n}
		case s.Iter:
			n, step = &node{op: opEach, a: n}, true
		default:
			n, err = c.compileIndex(n, s.Index)
			step = true
		}
	}
	return n, err
}

// compilePrimary compiles a term without its suffixes.
func (c *compiler) compilePrimary(t *gojq.Term) (*node, error) {
	if what, ok := unsupportedTerms[t.Type]; ok {
		return nil, newUnsupportedError(what[0], what[1])
	}
	switch t.Type {
	case gojq.TermTypeIdentity:
		return &node{op: opSame}, nil
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return compileLiteral(t)
	case gojq.TermTypeString:
		return c.compileString(t.Str)
	case gojq.TermTypeIndex:
		return c.compileIndex(&node{op: opSame}, t.Index)
	case gojq.TermTypeFunc:
		return c.compileCall(t.Func)
	case gojq.TermTypeObject:
		return c.compileObject(t.Object)
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return newLiteralNode([]byte("[]")), nil
		}
		a, err := c.compileNested(t.Array.Query)
		return &node{op: opArray, a: a}, err
	case gojq.TermTypeUnary:
		if t.Unary.Op != gojq.OpSub {
			return nil, newUnsupportedError("+", "sign of a positive value")
		}
		a, err := c.compileNested(&gojq.Query{Term: t.Unary.Term})
		return &node{op: opNegative, a: a}, err
	case gojq.TermTypeIf:
		return c.compileIf(t.If)
	case gojq.TermTypeTry:
		return c.compileChildren(&node{op: opTry}, t.Try.Body, t.Try.Catch, nil)
	case gojq.TermTypeQuery:
		return c.compileNested(t.Query)
	}
	return nil, fmt.Errorf("'%s' is not supported", wirejson.ClipText(t.String(), 40))
}

// compileLiteral compiles null, true, false or a number.
func compileLiteral(t *gojq.Term) (*node, error) {
	text := (&gojq.Term{Type: t.Type, Number: t.Number}).String()
	if wirejson.Check([]byte(text), wirejson.Limits{}) != nil {
		return nil, fmt.Errorf("'%s' is not a number", wirejson.ClipText(text, 40))
	}
	return newLiteralNode([]byte(text)), nil
}

// compileChildren compiles the parts of a node. A missing part stays as it is.
func (c *compiler) compileChildren(n *node, a, b, third *gojq.Query) (*node, error) {
	for _, part := range []struct {
		to   **node
		from *gojq.Query
	}{{&n.a, a}, {&n.b, b}, {&n.c, third}} {
		if part.from == nil {
			continue
		}
		var err error
		if *part.to, err = c.compileNested(part.from); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// compileIf compiles if a then b elif … else c end.
func (c *compiler) compileIf(t *gojq.If) (*node, error) {
	n, err := c.compileChildren(&node{op: opIf, c: &node{op: opSame}}, t.Cond, t.Then, t.Else)
	if err != nil {
		return nil, err
	}
	for _, branch := range slices.Backward(t.Elif) {
		inner, err := c.compileChildren(&node{op: opIf, c: n.c}, branch.Cond, branch.Then, nil)
		if err != nil {
			return nil, err
		}
		n.c = inner
	}
	return n, nil
}

// compileIndex compiles of.name, of["name"], of[b] and of[b:c].
func (c *compiler) compileIndex(of *node, index *gojq.Index) (*node, error) {
	n := &node{op: opIndex, a: of}
	switch {
	case index.Str != nil:
		var err error
		n.b, err = c.compileString(index.Str)
		return n, err
	case index.IsSlice:
		n.op = opSlice
		return c.compileChildren(n, nil, index.Start, index.End)
	case index.Start != nil:
		return c.compileChildren(n, nil, index.Start, nil)
	}
	return newFieldNode(of, index.Name), nil
}

// compileString compiles a string with its \(…) interpolations.
func (c *compiler) compileString(s *gojq.String) (*node, error) {
	if len(s.Queries) == 0 {
		return newLiteralNode(wirejson.AppendString(nil, s.Str)), nil
	}
	n := &node{op: opText}
	for _, q := range s.Queries {
		part, err := c.compileNested(q)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, part)
	}
	return n, nil
}

// compileObject compiles {a, "b": c, (d): e, $f}.
func (c *compiler) compileObject(o *gojq.Object) (*node, error) {
	n := &node{op: opObject}
	for _, m := range o.KeyVals {
		key, value, err := c.compileMember(m)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, key, value)
	}
	return n, nil
}

func (c *compiler) compileMember(m *gojq.ObjectKeyVal) (key, value *node, err error) {
	variable, isVariable := strings.CutPrefix(m.Key, "$")
	switch {
	case isVariable && m.Val != nil:
		err = errors.New("a member cannot be named by a variable: write ($name)")
	case isVariable:
		key = newLiteralNode(wirejson.AppendString(nil, variable))
		value, err = c.compileVariable(m.Key)
	case m.KeyQuery != nil:
		key, err = c.compileNested(m.KeyQuery)
	case m.KeyString != nil:
		key, err = c.compileString(m.KeyString)
		value = &node{op: opIndex, a: &node{op: opSame}, b: key}
	default:
		key, value = newLiteralNode(wirejson.AppendString(nil, m.Key)), newFieldNode(&node{op: opSame}, m.Key)
	}
	if m.Val != nil && err == nil {
		value, err = c.compileNested(m.Val)
	}
	return key, value, err
}

func (c *compiler) compileVariable(name string) (*node, error) {
	if !slices.Contains(c.variables, name) {
		return nil, fmt.Errorf("unknown variable '%s'", wirejson.ClipText(name, 40))
	}
	return &node{op: opVariable, name: name}, nil
}

// compileCall compiles a variable or the call of a function.
func (c *compiler) compileCall(f *gojq.Func) (*node, error) {
	if strings.HasPrefix(f.Name, "$") {
		return c.compileVariable(f.Name)
	}
	if what := unsupported[f.Name]; what != "" {
		return nil, newUnsupportedError(f.Name, what)
	}
	n := &node{op: opCall, call: functions[fmt.Sprintf("%s/%d", f.Name, len(f.Args))]}
	if n.call == nil {
		if known := aritiesText(f.Name); known != "" {
			return nil, fmt.Errorf("%s has %s, not %d", f.Name, known, len(f.Args))
		}
		return nil, fmt.Errorf("unknown function '%s'", wirejson.ClipText(f.Name, 40))
	}
	for _, q := range f.Args {
		arg, err := c.compileNested(q)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, arg)
	}
	return n, nil
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
