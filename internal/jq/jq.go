// Package jq selects from JSON by expressions of jq: that part of the language in which
// nothing runs without end. There is no recursion, no loop, no definition, no range, and
// nothing from outside: no environment, no input, no clock.
//
// It guarantees that an expression is refused, when it is compiled, for everything that is
// not of that part; that applying one ends within MaxTime, reads and makes no more than
// MaxWork and MaxMade bytes, and fails else; that values which are taken over stay the
// bytes that they were, digits and the order of members included; and that no error says
// anything of the data but kinds. It knows nothing of MCP.
//
// run.go bounds and accounts; on it stand numbers, values and their order. lex.go makes words
// of an expression, parse.go a tree (node.go), and eval.go walks it, with the functions of
// functions.go, sort.go, delete.go and pattern.go.
package jq

import (
	"fmt"
	"time"
)

// Expression is a compiled expression. It is immutable.
type Expression struct {
	root *node
	same bool
}

// Compile compiles an expression. Its error says where it is wrong, or what is not taken.
func Compile(text string) (*Expression, error) {
	if len(text) > MaxExpression {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxExpression)
	}
	p := parser{lexer: lexer{text: text}}
	root, err := p.parse()
	if err != nil {
		return nil, err
	}
	return &Expression{root: root, same: root.op == opSame}, nil
}

// Same reports whether the expression is the whole, ".".
func (e *Expression) Same() bool { return e.same }

// Apply returns the values that the expression makes of a JSON value, which passes
// rawjson.Check but for its size. Its error says nothing of the data.
func (e *Expression) Apply(input []byte) (values [][]byte, err error) {
	if len(input) > MaxInput {
		return nil, fmt.Errorf("the result has more than %d bytes", MaxInput)
	}
	r := run{begun: time.Now()}
	err = r.eval(e.root, input, nil, func(v []byte) error {
		if err := r.made(len(v) + 24); err != nil {
			return err
		}
		values = append(values, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}
