package textedit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Format is the format of a text.
type Format uint8

// The formats.
const (
	JSON Format = iota // with comments and trailing commas
	TOML
	YAML
)

// String returns the name of the format.
func (f Format) String() string { return [...]string{"JSON", "TOML", "YAML"}[f] }

var formatEditors = [...]formatEditor{JSON: jsonEditor{}, TOML: tomlEditor{}, YAML: yamlEditor{}}

// GetValue returns the value at a path of names, as JSON. The error is a *problem.Problem
// INVALID_CONFIG with line and column.
func GetValue(text []byte, f Format, path ...string) (value json.RawMessage, found bool, err error) {
	root, err := formatEditors[f].decodeTree(trimByteOrderMark(text))
	if err != nil {
		return nil, false, err
	}
	got, found := valueAt(root, path)
	if !found {
		return nil, false, nil
	}
	value, err = wirejson.MarshalWithoutHTMLEscape(got)
	return value, true, err
}

// SetValue sets the value at a path of names, and creates missing objects. An empty text counts as an empty file.
func SetValue(text []byte, f Format, value json.RawMessage, path ...string) ([]byte, error) {
	return setOrRemove(text, f, path, value)
}

// RemoveValue removes the value at a path of names, if there is one.
func RemoveValue(text []byte, f Format, path ...string) ([]byte, error) {
	return setOrRemove(text, f, path, nil)
}

// RestoreValues restores the values at the paths from before, and keeps the rest of text.
func RestoreValues(text, before []byte, f Format, paths [][]string) ([]byte, error) {
	for _, path := range paths {
		value, _, err := GetValue(before, f, path...)
		if err != nil {
			return nil, err
		}
		if text, err = setOrRemove(text, f, path, value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// PruneEmptyObjects removes the empty objects on a path that do not exist in before.
func PruneEmptyObjects(text, before []byte, f Format, path ...string) ([]byte, error) {
	for n := len(path); n > 0; n-- {
		value, _, err := GetValue(text, f, path[:n]...)
		if err != nil {
			return nil, err
		}
		if _, had, _ := GetValue(before, f, path[:n]...); had || string(value) != "{}" {
			return text, nil
		}
		if text, err = RemoveValue(text, f, path[:n]...); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// AppendToList appends a string to the list at a path, unless the list already contains it.
func AppendToList(text []byte, f Format, value string, path ...string) ([]byte, error) {
	list, err := listAt(text, f, path)
	if err != nil || slices.Contains(list, any(value)) {
		return text, err
	}
	longer := append(slices.Clone(list), value)
	if f != JSON || list == nil {
		return setList(text, f, longer, path)
	}
	return editAndVerify(text, f, path, longer, func(in []byte) ([]byte, error) { return jsonEditor{}.appendToList(in, path, value) })
}

// RemoveFromList removes a string from the list at a path.
func RemoveFromList(text []byte, f Format, value string, path ...string) ([]byte, error) {
	list, err := listAt(text, f, path)
	if err != nil {
		return text, err
	}
	for i := slices.Index(list, any(value)); i >= 0 && err == nil; i = slices.Index(list, any(value)) {
		list = slices.Delete(slices.Clone(list), i, i+1)
		if f != JSON {
			text, err = setList(text, f, list, path)
			continue
		}
		text, err = editAndVerify(text, f, path, list, func(in []byte) ([]byte, error) { return jsonEditor{}.removeFromList(in, path, i) })
	}
	return text, err
}

// pruneTree removes empty objects on a path.
func pruneTree(root map[string]any, path []string) {
	for n := len(path); n > 0; n-- {
		if here, _ := valueAt(root, path[:n]); !reflect.DeepEqual(here, map[string]any{}) {
			return
		}
		removeAt(root, path[:n])
	}
}

// listAt returns the list at a path, or nil if it is missing.
func listAt(text []byte, f Format, path []string) ([]any, error) {
	root, err := formatEditors[f].decodeTree(trimByteOrderMark(text))
	if err != nil {
		return nil, err
	}
	got, found := valueAt(root, path)
	if !found {
		return nil, nil
	}
	list, ok := got.([]any)
	if !ok {
		return nil, problem.Newf(problem.InvalidConfig, "%s is not a list.", strings.Join(path, ".")).WithHint("Correct the file first; nothing was changed.")
	}
	return list, nil
}

func setList(text []byte, f Format, list []any, path []string) ([]byte, error) {
	value, err := wirejson.MarshalWithoutHTMLEscape(list)
	if err != nil {
		return nil, err
	}
	return SetValue(text, f, value, path...)
}

// trimByteOrderMark returns a text without its byte order mark.
func trimByteOrderMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(ByteOrderMark)) }

// setOrRemove sets the value at a path, or removes it if value is nil.
func setOrRemove(text []byte, f Format, path []string, value json.RawMessage) ([]byte, error) {
	if value == nil {
		return editAndVerify(text, f, path, nil, func(in []byte) ([]byte, error) { return formatEditors[f].removeValue(in, path) })
	}
	wanted, err := decodeJSON(value)
	if err != nil {
		return text, err
	}
	if wanted == nil {
		return text, problem.Newf(problem.InvalidConfig, "%s cannot be set to null.", strings.Join(path, ".")).WithHint("Take it out.")
	}
	return editAndVerify(text, f, path, wanted, func(in []byte) ([]byte, error) { return formatEditors[f].setValue(in, path, value) })
}

// editAndVerify makes a change and verifies the result. The result must equal the previous text except at the path. The
// value at the path must equal wanted, or be missing if wanted is nil.
func editAndVerify(text []byte, f Format, path []string, wanted any, change func(in []byte) ([]byte, error)) ([]byte, error) {
	in := trimByteOrderMark(text)
	said, err := formatEditors[f].decodeTree(in)
	if err != nil {
		return text, err
	}
	switch was, there := valueAt(said, path); {
	case wanted == nil && !there, there && reflect.DeepEqual(was, wanted):
		return text, nil
	case wanted == nil:
		removeAt(said, path)
	default:
		if err := setValueAt(said, path, wanted); err != nil {
			return text, err
		}
	}
	out, err := change(in)
	if err != nil {
		return text, err
	}
	says, err := formatEditors[f].decodeTree(out)
	if err == nil && wanted == nil && !reflect.DeepEqual(says, said) {
		pruneTree(said, path[:len(path)-1]) // a TOML table exists only while it has an entry
	}
	if err != nil || !reflect.DeepEqual(says, said) {
		return text, problem.Newf(problem.InvalidConfig, "%s cannot be changed without changing other parts of the file.", strings.Join(path, ".")).
			WithHint("Edit the file manually. Nothing was changed.")
	}
	mark := len(text) - len(in)
	return slices.Concat(text[:mark], out), nil
}

// valueAt returns the value at a path.
func valueAt(root map[string]any, path []string) (any, bool) {
	var here any = root
	for _, name := range path {
		object, ok := here.(map[string]any)
		if !ok {
			return nil, false
		}
		if here, ok = object[name]; !ok {
			return nil, false
		}
	}
	return here, true
}

// setValueAt sets the value at a path.
func setValueAt(root map[string]any, path []string, value any) error {
	for i, name := range path[:len(path)-1] {
		next, there := root[name]
		object, ok := next.(map[string]any)
		switch {
		case !there, next == nil:
			object = map[string]any{}
			root[name] = object
		case !ok:
			return problem.Newf(problem.InvalidConfig, "%s is not an object.", strings.Join(path[:i+1], ".")).WithHint("Correct the file first; nothing was changed.")
		}
		root = object
	}
	root[path[len(path)-1]] = value
	return nil
}

// removeAt removes the existing value at a path.
func removeAt(root map[string]any, path []string) {
	holder, _ := valueAt(root, path[:len(path)-1])
	if object, ok := holder.(map[string]any); ok {
		delete(object, path[len(path)-1])
	}
}
