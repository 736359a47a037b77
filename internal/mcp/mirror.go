package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// A tool may want some of its arguments repeated in headers (x-mcp-header in
// its schema), for those who route by headers. They are only worth something
// when they say what the body says.

// maxMirrorDepth is how deep in a schema a parameter may stand that is
// mirrored in a header.
const maxMirrorDepth = 16

// Field is one header line.
type Field struct{ Name, Value string }

// Mirrored returns the headers that a tool wants for its arguments.
func Mirrored(definition, arguments json.RawMessage) []Field {
	var fields []Field
	eachMirror(definition, arguments, func(header string, value json.RawMessage) {
		if value != nil {
			fields = append(fields, Field{Name: HeaderParam + header, Value: HeaderText(plainText(value))})
		}
	})
	return fields
}

// Mismatch says which of the headers that came with a call do not say what its
// arguments say, "" when all do.
func Mismatch(definition, arguments json.RawMessage, given []Field) string {
	what := ""
	eachMirror(definition, arguments, func(header string, value json.RawMessage) {
		name, text, there := HeaderParam+header, "", false
		for _, f := range given {
			if strings.EqualFold(f.Name, name) {
				text, there = f.Value, true
			}
		}
		decoded, sound := PlainHeader(text)
		switch {
		case what != "":
		case value == nil && there:
			what = name + " is given, but the argument is not"
		case value != nil && !there:
			what = name + " is missing"
		case there && !sound:
			what = name + " has invalid characters or a broken =?base64?…?= encoding"
		case there && !sameValue(decoded, value):
			what = name + " does not match the argument"
		}
	})
	return what
}

// eachMirror goes through the parameters that are to be mirrored; value is nil
// when the argument is not given, or null.
func eachMirror(definition, arguments json.RawMessage, each func(header string, value json.RawMessage)) {
	if bytes.Contains(definition, []byte("x-mcp-header")) {
		mirror(wirejson.Find(definition, "inputSchema"), arguments, 0, each)
	}
}

func mirror(schema, arguments json.RawMessage, depth int, each func(string, json.RawMessage)) {
	if depth == maxMirrorDepth || wirejson.Kind(schema) != '{' {
		return
	}
	properties := wirejson.Find(schema, "properties")
	if wirejson.Kind(properties) != '{' {
		return
	}
	_ = wirejson.Members(properties, func(name, property []byte) error {
		if wirejson.Kind(property) != '{' {
			return nil
		}
		value := wirejson.Find(arguments, string(name))
		header, ok := wirejson.String(wirejson.Find(property, "x-mcp-header"))
		if !ok {
			mirror(property, value, depth+1, each)
			return nil
		}
		switch wirejson.Kind(value) {
		case 'n', '{', '[': // only what is plain is mirrored
			value = nil
		}
		each(header, value)
		return nil
	})
}

// plainText is a value as a header has it.
func plainText(value json.RawMessage) string {
	if text, ok := wirejson.String(value); ok {
		return text
	}
	return string(value)
}

// sameValue compares a header with an argument; numbers may be written
// differently.
func sameValue(header string, value json.RawMessage) bool {
	if header == plainText(value) {
		return true
	}
	if wirejson.Kind(value) != '0' {
		return false
	}
	a, errA := strconv.ParseFloat(header, 64)
	b, errB := strconv.ParseFloat(string(value), 64)
	return errA == nil && errB == nil && a == b && a < 1<<53 && a > -1<<53
}
