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

// CompileExpression compiles an expression. Its error contains the position, or the unsupported feature.
func CompileExpression(text string) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it is longer than %d bytes", maxExpression)
	}
	root, err := parseExpression(text)
	if err != nil {
		return nil, err
	}
	return &Expression{root: root, same: root.op == opSame}, nil
}

// IsIdentity reports whether the expression is ".".
func (e *Expression) IsIdentity() bool { return e.same }

// Apply returns the results of the expression for a JSON value. The value must pass wirejson.Check, except for its
// size. The error contains no data.
func (e *Expression) Apply(input []byte) (values [][]byte, err error) {
	if len(input) > maxInput {
		return nil, fmt.Errorf("the result has more than %d bytes", maxInput)
	}
	r := evaluation{begun: time.Now()}
	err = r.evalNode(e.root, input, nil, func(v []byte) error {
		if err := r.chargeOutput(len(v) + 24); err != nil {
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
