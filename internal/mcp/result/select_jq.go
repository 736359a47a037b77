package result

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
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it is longer than %d bytes", maxExpression)
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
// wirejson.Check but for its size. Its error says nothing of the data.
func (e *Expression) Apply(input []byte) (values [][]byte, err error) {
	if len(input) > maxInput {
		return nil, fmt.Errorf("the result has more than %d bytes", maxInput)
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
