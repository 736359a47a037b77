package result

import "mcpproxy/internal/mcp/wirejson"

// nodeOp is the operation of a node.
type nodeOp uint8

const (
	opSame     nodeOp = iota // .
	opLiteral                // a value
	opVariable               // $name
	opIndex                  // a[b], where b is evaluated on the whole input; a.name
	opSlice                  // a[b:c]
	opEach                   // a[]
	opTry                    // a?, try a catch b
	opPipe                   // a | b
	opBind                   // a as $name | b
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
	op      nodeOp
	name    string // name of a variable, or an operator
	value   []byte
	a, b, c *node
	list    []*node
	call    jqFunction
	// optional is set if an index, slice or iteration ignores values of the wrong kind.
	optional bool
}

func newFieldNode(of *node, name string) *node {
	return &node{op: opIndex, a: of, b: newLiteralNode(wirejson.AppendString(nil, name))}
}

func newLiteralNode(v []byte) *node { return &node{op: opLiteral, value: v} }
