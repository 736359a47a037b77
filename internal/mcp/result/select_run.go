package result

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// The limits.
const (
	maxExpression = 4 << 10 // bytes
	maxInput      = 16 << 20
	maxMade       = 8 << 20   // bytes that an evaluation may produce
	maxWork       = 192 << 20 // bytes that an evaluation may read; a step counts as 64
	maxTime       = 150 * time.Millisecond
)

// ErrLimit is the error for an expression that exceeds a limit.
var ErrLimit = errors.New("it takes too long, or its output is too large")

// evaluation is one evaluation of an expression.
type evaluation struct {
	begun    time.Time
	work     int
	asked    int // amount of work at which the time is checked again
	made_    int
	patterns map[patternKey]*compiledPattern
}

// chargeWork counts bytes that are read.
func (r *evaluation) chargeWork(n int) error {
	r.work += n + 64
	if r.work < r.asked {
		return nil
	}
	r.asked = r.work + 1<<18
	if r.work > maxWork || time.Since(r.begun) > maxTime {
		return ErrLimit
	}
	return nil
}

// chargeOutput counts bytes that are produced.
func (r *evaluation) chargeOutput(n int) error {
	if r.made_ += n; r.made_ > maxMade {
		return ErrLimit
	}
	return r.chargeWork(n)
}

// compiledPattern is a compiled regular expression.
type compiledPattern struct {
	*regexp.Regexp
	instructions int // maximum number of instructions for one character
}

// patternKey is a pattern and its flags as raw JSON.
type patternKey struct{ expr, flags string }

// kindName returns the kind of a value for errors.
func kindName(v []byte) string {
	switch wirejson.Kind(v) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// variableBinding is a variable with its value, in a linked list.
type variableBinding struct {
	name  string
	value []byte
	next  *variableBinding
}

func (b *variableBinding) lookUpValue(name string) []byte {
	for b.name != name { // the parser guarantees that it exists
		b = b.next
	}
	return b.value
}

// emitFunc receives one result. Its error ends the evaluation.
type emitFunc func(v []byte) error

// dataError is an error that try catches.
type dataError struct{ what string }

func (e *dataError) Error() string { return e.what }

func newDataError(format string, args ...any) error { return &dataError{fmt.Sprintf(format, args...)} }

// errDone ends a walk early.
var errDone = errors.New("done")

var null = []byte("null")

func boolJSON(b bool) []byte { return strconv.AppendBool(nil, b) }

// isTruthy reports whether a value is neither false nor null.
func isTruthy(v []byte) bool { return string(v) != "false" && string(v) != "null" }

// arrayBuilder builds an array.
type arrayBuilder struct{ text []byte }

func (a *arrayBuilder) appendElement(r *evaluation, v []byte) error {
	if err := r.chargeOutput(len(v) + 1); err != nil {
		return err
	}
	if need := len(a.text) + len(v) + 2; need > cap(a.text) {
		a.text = append(make([]byte, 0, max(2*need, 64)), a.text...) // doubles, to limit copying
	}
	if len(a.text) == 0 {
		a.text = append(a.text, '[')
	} else {
		a.text = append(a.text, ',')
	}
	a.text = append(a.text, v...)
	return nil
}

func (a *arrayBuilder) finishArray() []byte {
	if a.text == nil {
		return []byte("[]")
	}
	return append(a.text, ']')
}

func (a *arrayBuilder) finishArrayWith(err error) ([]byte, error) { return a.finishArray(), err }

// newStringJSON builds a string.
func (r *evaluation) newStringJSON(s string) ([]byte, error) { return quoteString(r, s) }

func quoteString[T string | []byte](r *evaluation, s T) ([]byte, error) {
	if err := r.chargeOutput(len(s) + len(s)/8 + 2); err != nil {
		return nil, err
	}
	return wirejson.AppendString(make([]byte, 0, len(s)+len(s)/8+2), s), nil
}

// toStringJSON implements tostring: a string stays as it is, and other values become their JSON text.
func (r *evaluation) toStringJSON(v []byte) ([]byte, error) {
	if kindName(v) == "string" {
		return v, nil
	}
	return quoteString(r, v)
}
