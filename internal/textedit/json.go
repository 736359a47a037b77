package textedit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/jsonc"
)

type inJSON struct{}

func (inJSON) tree(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 && jsonc.Bounded(text) == nil {
		return map[string]any{}, nil
	}
	root, wrong := jsonc.Parse(text)
	if wrong != nil {
		return nil, unreadable(text, wrong.Offset, wrong.Message, wrong.Hint)
	}
	said, err := said(text, root)
	if err != nil {
		return nil, err
	}
	object, ok := said.(map[string]any)
	if !ok {
		return nil, unreadable(text, root.StartOffset, "the file is no object", "it has to begin with {")
	}
	return object, nil
}

// said is what a value says. A name that an object has twice is refused: readers
// differ in which counts.
func said(text []byte, v hujson.Value) (any, error) {
	c := Parts(v)
	switch v.Value.(type) {
	case *hujson.Object:
		object := make(map[string]any, len(c.Items))
		for _, it := range c.Items {
			if _, twice := object[it.Name]; twice {
				return nil, unreadable(text, it.Start, "a name that the object has already", "take one of the two out")
			}
			value, err := said(text, it.Value)
			if err != nil {
				return nil, err
			}
			object[it.Name] = value
		}
		return object, nil
	case *hujson.Array:
		list := make([]any, 0, len(c.Items))
		for _, it := range c.Items {
			value, err := said(text, it.Value)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	literal, _ := v.Value.(hujson.Literal)
	return decoded(json.RawMessage(literal))
}

func (inJSON) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	ending := ""
	if len(bytes.TrimSpace(text)) == 0 {
		text, ending = []byte("{}"), "\n"
	}
	d, err := documentOf(text)
	if err != nil {
		return nil, err
	}
	splices, err := d.SetSpread(Parts(d.Root), path, value)
	if err != nil {
		return nil, err
	}
	return append(d.Apply(splices), ending...), nil
}

func (inJSON) remove(text []byte, path []string) ([]byte, error) {
	d, err := documentOf(text)
	if err != nil {
		return nil, err
	}
	object := Parts(d.Root)
	for _, name := range path[:len(path)-1] {
		object = Parts(object.Items[object.Named(name)].Value)
	}
	return d.Apply(d.Remove(object, object.Named(path[len(path)-1]))), nil
}

// append adds a text to the list at a path, and dropAt takes out one of its elements.
func (inJSON) append(text []byte, path []string, value string) ([]byte, error) {
	return withList(text, path, func(d *Document, list Container) []Splice {
		return d.Insert(list, func(string, bool) string { return string(hujson.String(value)) })
	})
}

func (inJSON) dropAt(text []byte, path []string, i int) ([]byte, error) {
	return withList(text, path, func(d *Document, list Container) []Splice { return d.Remove(list, i) })
}

// withList changes the list at a path, which is there.
func withList(text []byte, path []string, change func(*Document, Container) []Splice) ([]byte, error) {
	d, err := documentOf(text)
	if err != nil {
		return nil, err
	}
	here := d.Root
	for _, name := range path {
		object := Parts(here)
		here = object.Items[object.Named(name)].Value
	}
	return d.Apply(change(d, Parts(here))), nil
}

func documentOf(text []byte) (*Document, error) {
	d, wrong := NewDocument(text)
	if wrong != nil {
		return nil, fmt.Errorf("a text that was read before: %s", wrong.Message)
	}
	return d, nil
}

// SetSpread is SetAt for what other programs read: objects that are made are spread
// over lines, the value as its neighbours are.
func (d *Document) SetSpread(object Container, path []string, value json.RawMessage) ([]Splice, error) {
	i := object.Named(path[0])
	if i >= 0 && len(path) > 1 {
		return d.SetSpread(Parts(object.Items[i].Value), path[1:], value)
	}
	if i >= 0 {
		return d.Put(object, i, path[0], value)
	}
	value, err := wrapped(path[1:], value)
	if err != nil {
		return nil, err
	}
	v, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	depth := len(path)
	if n := len(object.Items); n > 0 && len(path) == 1 && isComposite(object.Items[n-1]) && d.OnOneLine(object.Items[n-1]) {
		depth = 0 // as the others
	}
	return d.Insert(object, func(indent string, lines bool) string { return d.Member(path[0], v, indent, depth, lines) }), nil
}

func isComposite(it Item) bool {
	kind := it.Value.Value.Kind()
	return kind == '{' || kind == '['
}
