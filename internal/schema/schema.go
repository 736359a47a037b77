// Package schema validates a call's arguments against a tool's own JSON
// Schema, drafts 2020-12 (the default) and 07.
//
// It guarantees that no schema makes it fetch anything, run unbounded or
// panic, and that a schema which is itself broken is reported as such (Broken)
// instead of refusing calls. It does not decide what a violation means: that
// is the gateway's, by validate_arguments.
//
// Numbers are exact, whatever their size. Patterns are RE2. The keywords
// format and content* are annotations, as 2020-12 has it: a server may know
// more formats than we do.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Bounds on a schema. The largest of real tools are 53 KB, 21 deep, with 2,210
// values.
const (
	maxBytes  = 128 << 10
	maxDepth  = 32
	maxValues = 5000
)

// Bounds on one validation. A step is the work of one schema on one value, or
// as much other work: about 50 ns.
const (
	maxArgBytes  = 16 << 20
	maxArgDepth  = 256
	maxArgValues = 200_000
	stepBudget   = 150_000
	nestBudget   = 2000 // schemas within schemas, in place or not
	maxReported  = 20
)

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	broken error
	root   *node
	doc    document // constants of the schema are compared where they stand
	runs   sync.Pool
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
	if len(raw) == 0 {
		s.root = &node{verdict: valid}
		return s
	}
	if len(raw) > maxBytes {
		s.broken = fmt.Errorf("it has %d bytes, more than %d", len(raw), maxBytes)
		return s
	}
	if s.broken = s.doc.parse(raw, maxDepth, maxValues); s.broken == nil {
		s.root, s.broken = compile(&s.doc)
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
	if s.broken != nil {
		return nil, s.broken
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	r, _ := s.runs.Get().(*run)
	if r == nil {
		r = &run{schema: &s.doc}
	}
	defer func() {
		if p := recover(); p != nil {
			violations, undecided = nil, fmt.Errorf("validating the arguments failed: %v", p)
			return // r is in an unknown state
		}
		if cap(r.doc.values) <= keepValues {
			r.doc.src = nil
			s.runs.Put(r)
		}
	}()
	return r.validate(s.root, args)
}

// keepValues is how large a working memory is kept for the next validation.
const keepValues = 4096

// Lazy is a schema that is compiled when it is first needed: of the tools that
// a catalog holds few are ever called.
type Lazy struct {
	raw    json.RawMessage
	once   sync.Once
	schema *Schema
}

// NewLazy makes a Lazy of a schema.
func NewLazy(raw json.RawMessage) *Lazy { return &Lazy{raw: raw} }

// Schema gives the compiled schema, compiling it at the first call.
func (l *Lazy) Schema() *Schema {
	l.once.Do(func() { l.schema = Compile(l.raw) })
	return l.schema
}
