package api

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// fieldLocation is the part of the request that contains a field. Its value is the name of the struct tag.
type fieldLocation string

const (
	inPath   fieldLocation = "path"
	inQuery  fieldLocation = "query"
	inHeader fieldLocation = "header"
	inBody   fieldLocation = "json"
)

// inputField is one parameter or body member of an input. The OpenAPI document and the validation are derived from it.
type inputField struct {
	name, doc string
	location  fieldLocation
	typ       reflect.Type
	index     []int // path of the struct field, for reflect.Value.FieldByIndex
	schema    schema
	required  bool
	split     bool // commas separate values

	min, max, defaultValue int // for a number in the query
}

// fieldsOf returns the tagged fields of a struct. It leaves out path parameters that path does not contain.
func fieldsOf(t reflect.Type, path string) []inputField {
	var all []inputField
	for _, one := range reflect.VisibleFields(t) {
		tag := one.Tag
		for _, at := range []fieldLocation{inPath, inQuery, inHeader, inBody} {
			name, _, _ := strings.Cut(tag.Get(string(at)), ",")
			if name == "" || name == "-" || at == inPath && pathParamReplacer(name).Replace(path) == path {
				continue
			}
			f := inputField{name: name, doc: tag.Get("doc"), location: at, typ: one.Type, index: one.Index,
				required: at == inPath || tag.Get("required") != "", split: tag.Get("split") != ""}
			if at == inBody {
				f.schema = schemaSet(nil).schemaOf(f.typ).withTags(tag)
			} else {
				f.schema = f.parameterSchema(tag)
			}
			all = append(all, f)
		}
	}
	return all
}

// pathParamReplacer returns a replacer that replaces a path parameter with value, or removes it if value is missing.
func pathParamReplacer(name string, value ...string) *strings.Replacer {
	v := strings.Join(value, "")
	return strings.NewReplacer("{"+name+"}", v, "{"+name+"...}", v)
}

// parameterSchema returns the schema of a path, query or header parameter, whose values are strings.
func (f *inputField) parameterSchema(tag reflect.StructTag) schema {
	switch {
	case f.typ == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "examples": []any{"2026-01-15T10:30:00Z"}}
	case f.typ.Kind() == reflect.Bool:
		return schema{"type": "string", "enum": []string{"true", "false"}}
	case f.typ.Kind() == reflect.Slice:
		return schema{"type": "array", "items": schemaSet(nil).schemaOf(f.typ.Elem()).withTags(tag)}
	case f.typ.Kind() != reflect.Int:
		return schemaSet(nil).schemaOf(f.typ).withTags(tag)
	}
	for name, bound := range map[string]*int{"min": &f.min, "max": &f.max, "default": &f.defaultValue} {
		*bound, _ = strconv.Atoi(tag.Get(name))
	}
	s := schema{"type": "integer", "minimum": f.min, "maximum": f.max}
	if f.defaultValue >= f.min {
		s["default"] = f.defaultValue
	}
	return s
}

// allowedValues returns the allowed values, or nil if any value is allowed.
func (f *inputField) allowedValues() []string {
	if items, ok := f.schema["items"].(schema); ok && f.location != inBody {
		return items.enumWords()
	}
	return f.schema.enumWords()
}

// parameterObject returns the OpenAPI Parameter Object for the field.
func (f *inputField) parameterObject() map[string]any {
	d := map[string]any{"name": f.name, "in": f.location, "description": f.doc, "schema": f.schema}
	if f.required {
		d["required"] = true
	}
	if f.typ.Kind() == reflect.Slice {
		d["explode"] = true
	}
	return d
}

// parseValues stores validated strings in the field of an input.
func (f *inputField) parseValues(v reflect.Value, values []string) {
	switch v := v.Addr().Interface().(type) {
	case *time.Time:
		*v, _ = parseTime(values[0])
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
	v.Set(reflect.MakeSlice(f.typ, len(values), len(values)))
	for i, one := range values {
		v.Index(i).SetString(one)
	}
}

// formatValues returns the strings that parseValues parses.
func (f *inputField) formatValues(v reflect.Value) []string {
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

// parseTime parses a time. An unencoded plus sign arrives as a space.
func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(s, " ", "+")); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}
