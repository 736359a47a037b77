package textedit

import (
	"maps"
	"reflect"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
)

// Subtract undoes the difference from before to after where text still has it. The rest
// of text stays, and objects or lists that after created do not stay empty.
func Subtract(text, before, after []byte, f Format) ([]byte, error) {
	old, err := formatEditors[f].tree(withoutBOM(before))
	if err != nil {
		return nil, err
	}
	made, err := formatEditors[f].tree(withoutBOM(after))
	if err != nil {
		return nil, err
	}
	s := subtractor{text, f}
	err = s.object(nil, old, made)
	return s.text, err
}

// subtractor is a text from which changes are removed.
type subtractor struct {
	text   []byte
	format Format
}

func (s *subtractor) object(path []string, old, made map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(made)) {
		was, had := old[name]
		if had && reflect.DeepEqual(was, made[name]) {
			continue
		}
		if err := s.member(append(slices.Clone(path), name), was, had, made[name]); err != nil {
			return err
		}
	}
	return nil
}

// member undoes the change of one value.
func (s *subtractor) member(path []string, was any, had bool, made any) error {
	now, there, err := s.now(path)
	if err != nil || !there {
		return err
	}
	if inner, ok := made.(map[string]any); ok {
		before, is := was.(map[string]any)
		if _, is2 := now.(map[string]any); is2 && (is || !had) {
			return s.inner(path, before, had, inner)
		}
	}
	if list, ok := made.([]any); ok {
		before, is := was.([]any)
		if current, is2 := now.([]any); is2 && (is || !had) {
			return s.list(path, before, had, list, current)
		}
	}
	switch {
	case !reflect.DeepEqual(now, made):
		return nil
	case had:
		return s.put(path, was)
	}
	return s.remove(path)
}

func (s *subtractor) inner(path []string, was map[string]any, had bool, made map[string]any) error {
	if err := s.object(path, was, made); err != nil || had {
		return err
	}
	if now, _, err := s.now(path); err != nil || !reflect.DeepEqual(now, map[string]any{}) {
		return err
	}
	return s.remove(path)
}

func (s *subtractor) list(path []string, was []any, had bool, made, now []any) error {
	holds := func(list []any, v any) bool {
		return slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, v) })
	}
	left := slices.DeleteFunc(slices.Clone(now), func(v any) bool { return holds(made, v) && !holds(was, v) })
	for _, v := range was {
		if !holds(made, v) && !holds(now, v) {
			left = append(left, v)
		}
	}
	switch {
	case len(left) == 0 && !had:
		return s.remove(path)
	case reflect.DeepEqual(left, now):
		return nil
	}
	return s.put(path, left)
}

func (s *subtractor) now(path []string) (any, bool, error) {
	root, err := formatEditors[s.format].tree(withoutBOM(s.text))
	if err != nil {
		return nil, false, err
	}
	value, there := valueAt(root, path)
	return value, there, nil
}

func (s *subtractor) put(path []string, value any) (err error) {
	raw, err := wirejson.Marshal(value)
	if err == nil {
		s.text, err = Set(s.text, s.format, raw, path...)
	}
	return err
}

func (s *subtractor) remove(path []string) (err error) {
	s.text, err = Remove(s.text, s.format, path...)
	return err
}
