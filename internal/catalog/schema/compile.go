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

// Bounds on a schema. The largest of real tools are 53 KB, 21 deep, with 2,210
// values.
const (
	maxBytes = 128 << 10
	maxDepth = 32
	maxWork  = 60_000 // of compiling, about 0.5 µs each
)

// location is the address that a schema has while it is compiled.
const location = "schema:///input"

var errLarge = fmt.Errorf("it is too large: more than %d bytes, %d levels or %d digits", maxBytes, maxDepth, maxDigits)

// nowhere is where schemas are loaded from.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }

// compile compiles the schema and puts the meter to it.
func (s *Schema) compile(raw json.RawMessage) error {
	if len(raw) > maxBytes {
		return errLarge
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	size := measure(doc)
	if size.depth > maxDepth || size.digits > maxDigits {
		return errLarge
	}
	w := work{below: map[string]int{}, refs: map[string]bool{}}
	if w.total(w.walk(doc, "", "")) > maxWork {
		return errComplex
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(s.meter.pattern)
	if err := c.AddResource(location, doc); err != nil {
		return explain(err)
	}
	if s.root, err = c.Compile(location); err != nil {
		return explain(err)
	}
	all := []*jsonschema.Schema{s.root}
	for _, at := range w.anchors { // no field of a schema leads to them
		if anchored, err := c.Compile(location + "#" + url.PathEscape(at)); err == nil {
			all = append(all, anchored)
		}
	}
	s.meter.slowness = size.digits / 32
	if err := s.meter.watch(all); err != nil {
		return err
	}
	s.plain = plainOf(doc)
	return nil
}

// explain says in short what is wrong with a schema.
func explain(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		if found := violationsIn(invalid.Err); len(found) > 0 {
			return fmt.Errorf("at #%s: %s", found[0].Path, found[0].Message)
		}
	}
	return errors.New(clip(strings.ReplaceAll(err.Error(), location, "")))
}

// work estimates how long the library takes to compile a schema.
type work struct {
	cost    int  // of what was walked over
	ids     int  // bytes
	nested  bool // below the root are more, to which references can be relative
	refs    map[string]bool
	below   map[string]int // by JSON pointer: schemas there and below
	anchors []string       // JSON pointers to dynamic anchors
}

// walk counts what can be a schema in a value; it stops when that is too much
// already.
func (w *work) walk(v any, parent, token string) (count int) {
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
			count += w.walk(element, at, "/"+strconv.Itoa(i))
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
			case "$schema": // in draft 04 it is id, which is a usual name, too
				w.nested = w.nested || strings.Contains(text, "draft-04")
			case "$ref", "$dynamicRef", "$recursiveRef":
				w.refs[text] = true
			case "$dynamicAnchor":
				w.refs["#"+at] = true
				w.anchors = append(w.anchors, at)
			}
			count += w.walk(member, at, "/"+wirejson.PointerToken(name))
		}
		w.below[at] = count
	}
	return count
}

// total adds what depends on the whole. A reference can lead to where the
// library expects no schema: then it copies all that it knows of the others,
// and validates what is there.
func (w *work) total(count int) int {
	total := w.cost + count*(count/60+w.ids/20)
	for ref := range w.refs {
		_, fragment, _ := strings.Cut(ref, "#")
		pointer, _ := url.PathUnescape(fragment)
		below, known := w.below[pointer]
		if !known || w.nested {
			below = count
		}
		if strings.HasPrefix(pointer, "/") {
			total += below*30 + count/4
		}
	}
	return total
}
