// Package schema validates a call's arguments against a tool's own JSON Schema, draft 2020-12 unless the schema
// declares another. It wraps github.com/santhosh-tekuri/jsonschema and limits its cost. If a schema has only common
// keywords and certainly accepts the arguments, the library is not called.
//
// Files:
//   - schema.go: the API.
//   - simple.go: compiles a schema of only common keywords; accept.go uses the result to accept valid arguments.
//   - compile.go: compiles a schema with the library, unless that would cost too much.
//   - meter.go: counts the steps of a validation and aborts it at a limit; pattern.go does so for regular expressions; size.go
//     measures values that are compared.
//   - partial_decode.go: decodes only those parts of large arguments that a schema reads.
//   - message.go: turns the library's errors into violations.
//
// Guarantees:
//   - No schema can make it fetch a resource, run without a limit or panic.
//   - A broken schema is reported (BrokenError) and does not reject calls.
//   - Numbers are exact, whatever their size. Patterns are RE2. The keywords format and content* are annotations, as in
//     2020-12, because a server may support more formats.
//
// It does not decide the consequence of a violation: gate does, by validate_arguments.
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
	root   *jsonschema.Schema // nil if every value is valid
	simple *simpleSchema      // nil if the schema has no simple form

	mu    sync.Mutex // guards meter: one validation runs at a time
	meter stepMeter
}

// Compile compiles a schema. An empty schema accepts everything.
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

// BrokenError returns the reason why the schema cannot be used, or nil.
func (s *Schema) BrokenError() error { return s.broken }

// CheckArguments returns up to 20 violations in a fixed order. It returns none if the arguments are valid, if the
// schema is broken, or if it cannot decide. In the last case, undecided is the reason. Missing arguments count as an
// empty object.
func (s *Schema) CheckArguments(args json.RawMessage) (violations []Violation, undecided error) {
	if s.broken != nil || s.root == nil {
		return nil, s.broken
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if s.certainlyAccepts(args) {
		return nil, nil
	}
	return s.checkWithLibrary(args, budget)
}

// checkWithLibrary validates with the library within a number of steps. Decoding costs steps too. If the arguments are
// too large to decode, only the parts that the schema reads are decoded.
func (s *Schema) checkWithLibrary(args json.RawMessage, steps int) ([]Violation, error) {
	if left := steps - len(args)/bytesPerStep - valueCountUpperBound(args); left >= 0 {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
		if err != nil {
			return nil, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		return s.validateDecoded(doc, left)
	}
	doc, left, err := s.decodePartsToValidate(args, steps)
	if err != nil {
		return nil, err
	}
	return s.validateDecoded(doc, left)
}

func (s *Schema) validateDecoded(doc any, steps int) (violations []Violation, undecided error) {
	size := measureValue(doc)
	if size.depth > maxArgDepth || size.digits > maxDigits {
		return nil, errUndecided
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.left = steps / (1 + s.meter.stepFactor + size.depth/16 + size.digits/32)
	undecided = runMetered(func() { violations = collectViolations(s.root.Validate(doc)) })
	return violations, undecided
}
