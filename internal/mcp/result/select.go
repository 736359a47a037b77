package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

var errNoData = errors.New("the result holds no JSON")

// Select replaces the content of a result by the values of an expression, one per line, and by instructions for reading
// the whole result with the handle. Its error contains no data.
func Select(raw json.RawMessage, e *Expression, handle string) (json.RawMessage, error) {
	data, err := ValueAt(raw, "")
	if err != nil {
		return nil, errNoData
	}
	values, err := applyToUnchecked(e, data)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for i, v := range values {
		if i > 0 {
			lines = append(lines, '\n')
		}
		lines = wirejson.AppendAsOneLine(lines, v)
	}
	out := appendTextBlock([]byte(`{"content":[`), lines)
	out = append(appendTextBlock(append(out, ','), []byte(selectionNote(raw, handle))), ']')
	_ = wirejson.EachMember(raw, func(name, value []byte) error {
		if n := string(name); n != "content" && n != "structuredContent" {
			out = append(append(wirejson.AppendString(append(out, ','), name), ':'), value...)
		}
		return nil
	})
	return append(out, '}'), nil
}

// selectionNote returns the instructions for reading the unselected data.
func selectionNote(raw []byte, handle string) string {
	if handle == "" {
		return fmt.Sprintf("Selected from a result of %d bytes, which is not kept.", len(raw))
	}
	h := string(wirejson.AppendString(nil, handle))
	return fmt.Sprintf(`Selected from a result of %d bytes. Whole result: read_result {"handle": %s}. As an argument of another tool: {"$result": %s, "path": "…"}`, len(raw), h, h)
}

// applyToUnchecked applies an expression to unvalidated JSON.
func applyToUnchecked(e *Expression, data []byte) ([][]byte, error) {
	c := wirejson.Cursor{Text: data, Depth: wirejson.RelayDepth}
	if c.ReadValue(); c.Finish() != nil {
		return nil, errNoData
	}
	return e.Apply(data)
}

// ReadSelected applies an expression to the data of a full result, or to the value at a path. A single value is
// returned as it is, several values as an array.
func ReadSelected(raw json.RawMessage, f ReadOptions, e *Expression) (Part, error) {
	if f.Offset != 0 || f.Limit != 0 {
		return Part{}, newParameterError("select", "", "offset and limit cannot be combined with select.", "Use a slice in select, such as .items[100:200].")
	}
	data, err := ValueAt(raw, f.Path)
	if err != nil {
		return Part{}, err
	}
	values, err := applyToUnchecked(e, unwrapJSONString(data))
	if err != nil {
		return Part{}, problem.New(problem.InvalidParameter, "The selection failed: "+err.Error()+".",
			"Read the result without select to see its structure.").With("parameter", "select")
	}
	p := Part{Path: f.Path, Unit: "values", Total: len(values)}
	if p.Content = bytes.Join(values, []byte{','}); len(values) != 1 {
		p.Content = slices.Concat([]byte{'['}, p.Content, []byte{']'})
	}
	if len(p.Content) > maxBytes {
		return Part{}, newParameterError("select", "", fmt.Sprintf("The selection has %d bytes, more than the limit of %d.", len(p.Content), maxBytes),
			"an expression that selects less, such as a slice: .items[0:100]")
	}
	return p, nil
}
