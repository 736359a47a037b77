package textedit

import (
	"maps"
	"reflect"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
)

// SubtractChanges undoes the difference from before to after where text still contains it. The rest of text is kept.
// Objects and lists that after created are removed if they become empty.
func SubtractChanges(text, before, after []byte, f Format) ([]byte, error) {
	old, err := formatEditors[f].decodeTree(trimByteOrderMark(before))
	if err != nil {
		return nil, err
	}
	made, err := formatEditors[f].decodeTree(trimByteOrderMark(after))
	if err != nil {
		return nil, err
	}
	s := subtractor{text, f}
	err = s.subtractObject(nil, old, made)
	return s.text, err
}

// subtractor stores a text from which changes are removed.
type subtractor struct {
	text   []byte
	format Format
}

func (s *subtractor) subtractObject(path []string, old, made map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(made)) {
		was, had := old[name]
		if had && reflect.DeepEqual(was, made[name]) {
			continue
		}
		if err := s.subtractMember(append(slices.Clone(path), name), was, had, made[name]); err != nil {
			return err
		}
	}
	return nil
}

// subtractMember undoes the change of one value.
func (s *subtractor) subtractMember(path []string, was any, had bool, made any) error {
	now, there, err := s.currentValue(path)
	if err != nil || !there {
		return err
	}
	if inner, ok := made.(map[string]any); ok {
		before, is := was.(map[string]any)
		if _, is2 := now.(map[string]any); is2 && (is || !had) {
			return s.subtractNestedObject(path, before, had, inner)
		}
	}
	if list, ok := made.([]any); ok {
		before, is := was.([]any)
		if current, is2 := now.([]any); is2 && (is || !had) {
			return s.subtractList(path, before, had, list, current)
		}
	}
	switch {
	case !reflect.DeepEqual(now, made):
		return nil
	case had:
		return s.putValue(path, was)
	}
	return s.removeValue(path)
}

func (s *subtractor) subtractNestedObject(path []string, was map[string]any, had bool, made map[string]any) error {
	if err := s.subtractObject(path, was, made); err != nil || had {
		return err
	}
	if now, _, err := s.currentValue(path); err != nil || !reflect.DeepEqual(now, map[string]any{}) {
		return err
	}
	return s.removeValue(path)
}

func (s *subtractor) subtractList(path []string, was []any, had bool, made, now []any) error {
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
		return s.removeValue(path)
	case reflect.DeepEqual(left, now):
		return nil
	}
	for _, v := range now {
		text, isText := v.(string)
		if !isText || holds(left, v) {
			continue
		}
		var err error
		if s.text, err = RemoveFromList(s.text, s.format, text, path...); err != nil { // keeps comments in the list
			return err
		}
	}
	if now, _, err := s.currentValue(path); err != nil || reflect.DeepEqual(now, left) {
		return err
	}
	return s.putValue(path, left)
}

func (s *subtractor) currentValue(path []string) (any, bool, error) {
	root, err := formatEditors[s.format].decodeTree(trimByteOrderMark(s.text))
	if err != nil {
		return nil, false, err
	}
	value, there := valueAt(root, path)
	return value, there, nil
}

func (s *subtractor) putValue(path []string, value any) (err error) {
	raw, err := wirejson.MarshalWithoutHTMLEscape(value)
	if err == nil {
		s.text, err = SetValue(s.text, s.format, raw, path...)
	}
	return err
}

func (s *subtractor) removeValue(path []string) (err error) {
	s.text, err = RemoveValue(s.text, s.format, path...)
	return err
}
