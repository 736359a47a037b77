// Package schema validates a call's arguments against a tool's own JSON
// Schema, draft 2020-12 unless the schema names another.
//
// It guarantees that no schema makes it fetch anything, run unbounded or
// panic, and that a schema which is itself broken is reported as such (Broken)
// instead of refusing calls. It does not decide what a violation means: that
// is the gateway's, by validate_arguments. Nor does it validate by itself:
// github.com/santhosh-tekuri/jsonschema does, and here is what bounds it. Only
// arguments that a plain schema, with none but the usual keywords, certainly
// allows are accepted without it.
//
// Numbers are exact, whatever their size. Patterns are RE2. The keywords
// format and content* are annotations, as 2020-12 has it: a server may know
// more formats than we do.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	broken error
	root   *jsonschema.Schema // nil when everything is valid
	plain  *plain             // nil when the schema is not plain

	mu    sync.Mutex // guards meter: there is one validation at a time
	meter meter
}

// Violation is one way in which arguments do not fit. Path is a JSON pointer
// into the arguments; "" is the whole.
type Violation struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// ErrUndecided says that a validation took more than it may, so that nothing
// can be said about the arguments.
var ErrUndecided = errors.New("validating the arguments would take too long")

// Compile compiles a schema. Without any (nil, empty) everything is valid.
func Compile(raw json.RawMessage) (s *Schema) {
	s = &Schema{}
	defer func() {
		if p := recover(); p != nil {
			s.broken = fmt.Errorf("compiling it failed: %v", p)
		}
	}()
	if len(raw) > 0 {
		s.broken = s.compile(raw)
	}
	return s
}

// Broken says why the schema cannot be used; nil when it can.
func (s *Schema) Broken() error { return s.broken }

// Validate gives the ways in which the arguments do not fit, in a fixed order,
// at most 20. It gives none when they fit, when the schema is broken, and when
// it cannot be decided; Check tells these apart. No arguments are an empty
// object.
func (s *Schema) Validate(args json.RawMessage) []Violation {
	v, _ := s.Check(args)
	return v
}

// Check is Validate that also says why nothing could be decided.
func (s *Schema) Check(args json.RawMessage) (violations []Violation, undecided error) {
	if s.broken != nil || s.root == nil {
		return nil, s.broken
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	steps := budget - len(args)/bytesPerStep - mostValues(args) // reading is work, too
	if steps < 0 {
		return nil, ErrUndecided
	}
	if s.accepts(args, steps) {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	size := measure(doc)
	if size.depth > maxArgDepth || size.digits > maxDigits {
		return nil, ErrUndecided
	}
	defer func() {
		if p := recover(); p == ErrUndecided {
			violations, undecided = nil, ErrUndecided
		} else if p != nil {
			violations, undecided = nil, fmt.Errorf("validating the arguments failed: %v", p)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.left = steps / (1 + s.meter.slowness + size.depth/16 + size.digits/32)
	return violationsIn(s.root.Validate(doc)), nil
}
