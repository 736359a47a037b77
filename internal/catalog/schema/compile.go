package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpproxy/internal/mcp/wirejson"
)

// Limits for a schema. The largest schema of a real tool has 53 KB, 21 levels and 2,210 values.
const (
	maxBytes = 128 << 10
	maxDepth = 32
	maxWork  = 60_000 // units of compiling, about 0.5 µs each
)

// location is the URL of a schema during its compilation.
const location = "schema:///input"

var errTooLarge = fmt.Errorf("it is too large: more than %d bytes, %d levels or %d digits", maxBytes, maxDepth, maxDigits)

// refusingLoader is a loader that refuses to fetch schemas.
type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }

// compile compiles the schema and attaches the meter to it.
func (s *Schema) compile(raw json.RawMessage) error {
	if len(raw) > maxBytes {
		return errTooLarge
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	size := measureValue(doc)
	if size.depth > maxDepth || size.digits > maxDigits {
		return errTooLarge
	}
	w := compileCostEstimator{schemasBelow: map[string]int{}, refs: map[string]bool{}}
	if w.totalCost(w.countSchemas(doc, "", "")) > maxWork {
		return errTooComplex
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refusingLoader{})
	c.UseRegexpEngine(s.meter.compilePattern)
	if err := c.AddResource(location, doc); err != nil {
		return shortenCompileError(err)
	}
	if s.root, err = c.Compile(location); err != nil {
		return shortenCompileError(err)
	}
	all := []*jsonschema.Schema{s.root}
	for _, at := range w.anchors { // no field of a schema refers to them
		if anchored, err := c.Compile(location + "#" + url.PathEscape(at)); err == nil {
			all = append(all, anchored)
		}
	}
	s.meter.stepFactor = size.digits / 32
	if err := s.meter.attachTo(all); err != nil {
		return err
	}
	s.simple = compileSimple(doc)
	return nil
}

// shortenCompileError returns a short error text for a broken schema.
func shortenCompileError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		if found := collectViolations(invalid.Err); len(found) > 0 {
			return fmt.Errorf("at #%s: %s", found[0].Path, found[0].Message)
		}
	}
	return errors.New(clipText(strings.ReplaceAll(err.Error(), location, "")))
}

// compileCostEstimator estimates how long the library takes to compile a schema.
type compileCostEstimator struct {
	cost         int  // of the visited values
	ids          int  // total length of ids, in bytes
	nested       bool // there are ids below the root; references can be relative to them
	refs         map[string]bool
	schemasBelow map[string]int // by JSON pointer: number of schemas at this location and below
	anchors      []string       // JSON pointers to dynamic anchors
}

// countSchemas counts possible schemas in a value. It stops when the cost exceeds the limit.
func (w *compileCostEstimator) countSchemas(v any, parent, token string) (count int) {
	if w.cost += 10 + len(parent)/20; w.cost > maxWork {
		return 0
	}
	at := parent + token
	switch v := v.(type) {
	case bool:
		w.cost += 15
		return 1
	case []any:
		for i, element := range v {
			count += w.countSchemas(element, at, "/"+strconv.Itoa(i))
		}
		return count + 1
	case map[string]any:
		w.cost += 25
		count = 1
		for name, member := range v {
			text, _ := member.(string)
			switch name {
			case "$id", "id":
				w.ids += len(text)
				w.nested = w.nested || name == "$id" && text != "" && at != ""
			case "$schema": // draft 04 uses id, which is also a common property name
				w.nested = w.nested || strings.Contains(text, "draft-04")
			case "$ref", "$dynamicRef", "$recursiveRef":
				w.refs[text] = true
			case "$dynamicAnchor":
				w.refs["#"+at] = true
				w.anchors = append(w.anchors, at)
			}
			count += w.countSchemas(member, at, "/"+wirejson.EscapePointerToken(name))
		}
		w.schemasBelow[at] = count
	}
	return count
}

// totalCost adds the cost of references. A reference can lead to a location where the library
// expects no schema: then it copies all known schemas and validates the target.
func (w *compileCostEstimator) totalCost(count int) int {
	total := w.cost + count*(count/60+w.ids/20)
	for ref := range w.refs {
		_, fragment, _ := strings.Cut(ref, "#")
		pointer, _ := url.PathUnescape(fragment)
		below, known := w.schemasBelow[pointer]
		if !known || w.nested {
			below = count
		}
		if strings.HasPrefix(pointer, "/") {
			total += below*30 + count/4
		}
	}
	return total
}
