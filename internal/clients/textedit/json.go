package textedit

import (
	"bytes"
	"encoding/json"
	"fmt"

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
	ending := ""
	if len(bytes.TrimSpace(text)) == 0 {
		text, ending = []byte("{}"), "\n"
	}
	d, err := reparseDocument(text)
	if err != nil {
		return nil, err
	}
	splices, err := d.SplicesToSetMultiline(ContainerOf(d.Root), path, value)
	if err != nil {
		return nil, err
	}
	return append(d.ApplySplices(splices), ending...), nil
}

func (jsonEditor) removeValue(text []byte, path []string) ([]byte, error) {
	d, err := reparseDocument(text)
	if err != nil {
		return nil, err
	}
	object := ContainerOf(d.Root)
	for _, name := range path[:len(path)-1] {
		object = ContainerOf(object.Items[object.IndexOf(name)].Value)
	}
	return d.ApplySplices(d.SplicesToRemove(object, object.IndexOf(path[len(path)-1]))), nil
}

// appendToList appends a string to the list at a path. removeFromList removes one.
func (jsonEditor) appendToList(text []byte, path []string, value string) ([]byte, error) {
	return editList(text, path, func(d *Document, list Container) []Splice {
		return d.SplicesToInsert(list, func(string, bool) string { return string(hujson.String(value)) })
	})
}

func (jsonEditor) removeFromList(text []byte, path []string, i int) ([]byte, error) {
	return editList(text, path, func(d *Document, list Container) []Splice { return d.SplicesToRemove(list, i) })
}

// editList changes the existing list at a path.
func editList(text []byte, path []string, change func(*Document, Container) []Splice) ([]byte, error) {
	d, err := reparseDocument(text)
	if err != nil {
		return nil, err
	}
	here := d.Root
	for _, name := range path {
		object := ContainerOf(here)
		here = object.Items[object.IndexOf(name)].Value
	}
	return d.ApplySplices(change(d, ContainerOf(here))), nil
}

// reparseDocument parses a text that was parsed before. It cannot fail because of the syntax.
func reparseDocument(text []byte) (*Document, error) {
	d, wrong := NewDocument(text)
	if wrong != nil {
		return nil, fmt.Errorf("the text could be parsed before, but not now: %s", wrong.Message)
	}
	return d, nil
}
