package result

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// The bounds.
const (
	maxExpression = 4 << 10 // bytes
	maxInput      = 16 << 20
	maxMade       = 8 << 20   // bytes that an expression makes on the way
	maxWork       = 192 << 20 // bytes that it reads, of which each step is 64
	MaxTime       = 150 * time.Millisecond
)

// ErrBounds is the error of an expression that takes too long, or makes too much.
var ErrBounds = errors.New("it takes too long, or makes too much of the result")

// run is one application.
type run struct {
	begun    time.Time
	work     int
	asked    int // work at which the clock is looked at again
	made_    int
	patterns map[patternKey]*pattern
}

// spend accounts for bytes that are read.
func (r *run) spend(n int) error {
	r.work += n + 64
	if r.work < r.asked {
		return nil
	}
	r.asked = r.work + 1<<18
	if r.work > maxWork || time.Since(r.begun) > MaxTime {
		return ErrBounds
	}
	return nil
}

// made accounts for bytes that are made.
func (r *run) made(n int) error {
	if r.made_ += n; r.made_ > maxMade {
		return ErrBounds
	}
	return r.spend(n)
}

// pattern is a regular expression.
type pattern struct {
	*regexp.Regexp
	instructions int // which one character may take
}

// patternKey is a pattern and its flags as they are in JSON.
type patternKey struct{ expr, flags string }

// kind is the kind of a value, as errors say it.
func kind(v []byte) string {
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

// binding is a variable and its value, before others.
type binding struct {
	name  string
	value []byte
	next  *binding
}

func (b *binding) find(name string) []byte {
	for b.name != name { // the parser has seen to it that it is there
		b = b.next
	}
	return b.value
}

// emit takes one value of an expression. Its error ends the evaluation.
type emit func(v []byte) error

// put hands on a value, or its error.
func put(out emit) func([]byte, error) error {
	return func(v []byte, err error) error {
		if err != nil {
			return err
		}
		return out(v)
	}
}

// dataError is what is wrong with the data for an expression: try catches it.
type dataError struct{ what string }

func (e *dataError) Error() string { return e.what }

func failed(format string, args ...any) error { return &dataError{fmt.Sprintf(format, args...)} }

// errDone ends a walk that has found what it looks for.
var errDone = errors.New("done")

var null = []byte("null")

func boolean(b bool) []byte { return strconv.AppendBool(nil, b) }

// truthy reports whether a value counts as true: all but false and null.
func truthy(v []byte) bool { return string(v) != "false" && string(v) != "null" }

// array is an array that is made.
type array struct{ text []byte }

func (a *array) add(r *run, v []byte) error {
	if err := r.made(len(v) + 1); err != nil {
		return err
	}
	if need := len(a.text) + len(v) + 2; need > cap(a.text) {
		a.text = append(make([]byte, 0, max(2*need, 64)), a.text...) // it doubles, else it is copied often
	}
	if len(a.text) == 0 {
		a.text = append(a.text, '[')
	} else {
		a.text = append(a.text, ',')
	}
	a.text = append(a.text, v...)
	return nil
}

func (a *array) end() []byte {
	if a.text == nil {
		return []byte("[]")
	}
	return append(a.text, ']')
}

func (a *array) endOf(err error) ([]byte, error) { return a.end(), err }

// text is a string that is made.
func (r *run) text(s string) ([]byte, error) { return quoted(r, s) }

func quoted[T string | []byte](r *run, s T) ([]byte, error) {
	if err := r.made(len(s) + len(s)/8 + 2); err != nil {
		return nil, err
	}
	return wirejson.AppendString(make([]byte, 0, len(s)+len(s)/8+2), s), nil
}

// stringOf is a value as a string of JSON: a string itself, else its text.
func (r *run) stringOf(v []byte) ([]byte, error) {
	if kind(v) == "string" {
		return v, nil
	}
	return quoted(r, v)
}
