// Package schema validates a call's arguments against a tool's own JSON
// Schema, draft 2020-12 unless the schema names another.
//
// It guarantees that no schema makes it fetch anything, run unbounded or
// panic, and that a schema which is itself broken is reported as such (Broken)
// instead of refusing calls. It does not decide what a violation means: that
// is gate's, by validate_arguments. Nor does it validate by itself:
// github.com/santhosh-tekuri/jsonschema does, and here is what bounds it. Only
// arguments that a plain schema, with none but the usual keywords, certainly
// allows are accepted without it.
//
// Numbers are exact, whatever their size. Patterns are RE2. The keywords
// format and content* are annotations, as 2020-12 has it: a server may know
// more formats than we do.
//
// The files stand on one another in this order: size and plain (the form of usual
// schemas); meter, which bounds a validation; pattern and message; schema; and
// what it does by: compile, accept, and look, which reads large arguments.
package schema

import (
	"bytes"
	"encoding/json"
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

// Broken returns why the schema cannot be used; nil when it can.
func (s *Schema) Broken() error { return s.broken }

// Check returns the ways in which the arguments do not fit, in a fixed order, at
// most 20. It returns none when they fit, when the schema is broken, and when it
// cannot be decided: undecided tells why. No arguments are an empty object.
func (s *Schema) Check(args json.RawMessage) (violations []Violation, undecided error) {
	if s.broken != nil || s.root == nil {
		return nil, s.broken
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if s.accepts(args) {
		return nil, nil
	}
	return s.check(args, budget)
}

// check lets the library judge within a number of steps. Reading is work, too:
// of what is too large to be read, only what the schema looks at is.
func (s *Schema) check(args json.RawMessage, steps int) ([]Violation, error) {
	if left := steps - len(args)/bytesPerStep - mostValues(args); left >= 0 {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
		if err != nil {
			return nil, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		return s.judge(doc, left)
	}
	doc, left, err := s.readSome(args, steps)
	if err != nil {
		return nil, err
	}
	return s.judge(doc, left)
}

func (s *Schema) judge(doc any, steps int) (violations []Violation, undecided error) {
	size := measure(doc)
	if size.depth > maxArgDepth || size.digits > maxDigits {
		return nil, errUndecided
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.left = steps / (1 + s.meter.slowness + size.depth/16 + size.digits/32)
	undecided = bounded(func() { violations = violationsIn(s.root.Validate(doc)) })
	return violations, undecided
}
