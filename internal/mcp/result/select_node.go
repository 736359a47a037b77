package result

import "mcpproxy/internal/mcp/wirejson"

// op is the operation of a node.
type op uint8

const (
	opSame     op = iota // .
	opLiteral            // a value
	opVariable           // $name
	opIndex              // a[b], where b is evaluated on the whole input; a.name
	opSlice              // a[b:c]
	opEach               // a[]
	opTry                // a?, try a catch b
	opPipe               // a | b
	opBind               // a as $name | b
	opComma
	opAlternative // a // b
	opOr
	opAnd
	opCompare
	opArithmetic
	opNegative
	opArray
	opObject // list: alternating keys and values
	opText   // list: parts of a string
	opIf     // a then b else c
	opCall
)

// node is a node of the syntax tree.
type node struct {
	op      op
	name    string // of a variable; an operator
	value   []byte
	a, b, c *node
	list    []*node
	call    *function
	// optional: an index, slice or iteration ignores values of the wrong kind.
	optional bool
}

// plain converts a string without expressions to a literal.
func (n *node) plain() *node {
	switch {
	case len(n.list) == 0:
		return literal([]byte(`""`))
	case len(n.list) == 1 && n.list[0].op == opLiteral && wirejson.Kind(n.list[0].value) == '"':
		return n.list[0]
	}
	return n
}

// function is a function of the language. Its arguments are expressions.
type function struct {
	run func(r *run, args []*node, in []byte, env *binding, out emit) error
}

func field(of *node, name string) *node {
	return &node{op: opIndex, a: of, b: literal(wirejson.AppendString(nil, name))}
}

func literal(v []byte) *node { return &node{op: opLiteral, value: v} }
