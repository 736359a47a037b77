package api

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// place is where a field of an input comes from, as tags name it.
type place string

const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
	inBody   place = "json"
)

// field is one part of an input: what the document says and what is checked are
// the same.
type field struct {
	name, doc string
	place     place
	of        reflect.Type
	index     []int // in the input
	schema    schema
	required  bool
	split     bool // commas separate values, too

	min, max, preset int // of a number in the query
}

// fieldsOf are the fields of a struct that have a name for one of the places; for
// the path only where it has that name.
func fieldsOf(t reflect.Type, path string) []field {
	var all []field
	for _, one := range reflect.VisibleFields(t) {
		tag := one.Tag
		for _, at := range []place{inPath, inQuery, inHeader, inBody} {
			name, _, _ := strings.Cut(tag.Get(string(at)), ",")
			if name == "" || name == "-" || at == inPath && wildcard(name).Replace(path) == path {
				continue
			}
			f := field{name: name, doc: tag.Get("doc"), place: at, of: one.Type, index: one.Index,
				required: at == inPath || tag.Get("required") != "", split: tag.Get("split") != ""}
			if at == inBody {
				f.schema = schemas(nil).of(f.of).said(tag)
			} else {
				f.schema = f.parameter(tag)
			}
			all = append(all, f)
		}
	}
	return all
}

// wildcard replaces a name in the path of an operation by nothing, or by a value.
func wildcard(name string, value ...string) *strings.Replacer {
	v := strings.Join(value, "")
	return strings.NewReplacer("{"+name+"}", v, "{"+name+"...}", v)
}

// parameter is the schema of a field in the path, the query or a header, where
// there are texts only.
func (f *field) parameter(tag reflect.StructTag) schema {
	switch {
	case f.of == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "examples": []any{"2026-01-15T10:30:00Z"}}
	case f.of.Kind() == reflect.Bool:
		return schema{"type": "string", "enum": []string{"true", "false"}}
	case f.of.Kind() == reflect.Slice:
		return schema{"type": "array", "items": schemas(nil).of(f.of.Elem()).said(tag)}
	case f.of.Kind() != reflect.Int:
		return schemas(nil).of(f.of).said(tag)
	}
	for name, bound := range map[string]*int{"min": &f.min, "max": &f.max, "default": &f.preset} {
		*bound, _ = strconv.Atoi(tag.Get(name))
	}
	s := schema{"type": "integer", "minimum": f.min, "maximum": f.max}
	if f.preset >= f.min {
		s["default"] = f.preset
	}
	return s
}

// allowed are the words that a value, or each of several, may be; nil = anything.
func (f *field) allowed() []string {
	if items, ok := f.schema["items"].(schema); ok && f.place != inBody {
		return items.words()
	}
	return f.schema.words()
}

// describe is a field of the path, the query or a header in the document.
func (f *field) describe() map[string]any {
	d := map[string]any{"name": f.name, "in": f.place, "description": f.doc, "schema": f.schema}
	if f.required {
		d["required"] = true
	}
	if f.of.Kind() == reflect.Slice {
		d["explode"] = true
	}
	return d
}

// set puts texts that are sound into the field of an input.
func (f *field) set(v reflect.Value, values []string) {
	switch v := v.Addr().Interface().(type) {
	case *time.Time:
		*v, _ = parseMoment(values[0])
		return
	case *int:
		*v, _ = strconv.Atoi(values[0])
		return
	case *bool:
		*v = values[0] == "true"
		return
	}
	if v.Kind() != reflect.Slice {
		v.SetString(values[0])
		return
	}
	v.Set(reflect.MakeSlice(f.of, len(values), len(values)))
	for i, one := range values {
		v.Index(i).SetString(one)
	}
}

// texts is what set reads.
func (f *field) texts(v reflect.Value) []string {
	switch v := v.Interface().(type) {
	case time.Time:
		return []string{v.UTC().Format(time.RFC3339Nano)}
	case int:
		return []string{strconv.Itoa(v)}
	case bool:
		return []string{strconv.FormatBool(v)}
	}
	if v.Kind() != reflect.Slice {
		return []string{v.String()}
	}
	var out []string
	for i := range v.Len() {
		out = append(out, v.Index(i).String())
	}
	return out
}

// parseMoment reads a time. A plus sign that nobody encoded reads as a space.
func parseMoment(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(s, " ", "+")); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}
