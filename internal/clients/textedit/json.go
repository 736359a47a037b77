package textedit

import (
	"bytes"
	"encoding/json"

	"github.com/tailscale/hujson"
)

type jsonEditor struct{}

func (jsonEditor) decodeTree(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 && CheckSizeAndEncoding(text) == nil {
		return map[string]any{}, nil
	}
	root, wrong := ParseJSONC(text)
	if wrong != nil {
		return nil, newParseError(text, wrong.Offset, wrong.Message, wrong.Hint)
	}
	said, err := decodeValue(text, root)
	if err != nil {
		return nil, err
	}
	object, ok := said.(map[string]any)
	if !ok {
		return nil, newParseError(text, root.StartOffset, "the file is not an object", "it must start with {")
	}
	return object, nil
}

// decodeValue decodes a value. Duplicate names are rejected, because parsers differ in which of them they use.
func decodeValue(text []byte, v hujson.Value) (any, error) {
	c := ContainerOf(v)
	switch v.Value.(type) {
	case *hujson.Object:
		object := make(map[string]any, len(c.Items))
		for _, it := range c.Items {
			if _, twice := object[it.Name]; twice {
				return nil, newParseError(text, it.Start, "a duplicate name in the object", "remove one of the two")
			}
			value, err := decodeValue(text, it.Value)
			if err != nil {
				return nil, err
			}
			object[it.Name] = value
		}
		return object, nil
	case *hujson.Array:
		list := make([]any, 0, len(c.Items))
		for _, it := range c.Items {
			value, err := decodeValue(text, it.Value)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	literal, _ := v.Value.(hujson.Literal)
	return decodeJSON(json.RawMessage(literal))
}

func (jsonEditor) setValue(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	return EditJSON(text, func(d *Document) ([]Splice, error) {
		return d.SplicesToSetAtPath(ContainerOf(d.Root), path, value, true)
	})
}

func (jsonEditor) removeValue(text []byte, path []string) ([]byte, error) {
	return EditJSON(text, func(d *Document) ([]Splice, error) {
		last := len(path) - 1
		object := d.existingContainer(path[:last])
		return d.SplicesToRemove(object, object.IndexOf(path[last])), nil
	})
}

// appendToList appends a string to the list at a path. removeFromList removes one.
func (jsonEditor) appendToList(text []byte, path []string, value string) ([]byte, error) {
	return EditJSON(text, func(d *Document) ([]Splice, error) {
		return d.SplicesToInsert(d.existingContainer(path), func(string, bool) string { return string(hujson.String(value)) }), nil
	})
}

func (jsonEditor) removeFromList(text []byte, path []string, i int) ([]byte, error) {
	return EditJSON(text, func(d *Document) ([]Splice, error) { return d.SplicesToRemove(d.existingContainer(path), i), nil })
}

// existingContainer returns the object or list at a path of names, which exists.
func (d *Document) existingContainer(path []string) Container {
	here := ContainerOf(d.Root)
	for _, name := range path {
		here = ContainerOf(here.Items[here.IndexOf(name)].Value)
	}
	return here
}
