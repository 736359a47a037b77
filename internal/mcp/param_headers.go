package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// A tool may require that some arguments are repeated in headers (x-mcp-header in its schema), for
// intermediaries that route by headers. The headers must match the body.

// maxParamHeaderDepth limits the depth in a schema at which x-mcp-header is honored.
const maxParamHeaderDepth = 16

// Header is one header line.
type Header struct{ Name, Value string }

// ParamHeaders returns the headers that a tool requires for its arguments.
func ParamHeaders(definition, arguments json.RawMessage) []Header {
	var fields []Header
	eachParamHeader(definition, arguments, func(header string, value json.RawMessage) {
		if value != nil {
			fields = append(fields, Header{Name: HeaderParam + header, Value: EncodeHeaderValue(argumentHeaderText(value))})
		}
	})
	return fields
}

// ParamHeaderMismatch describes the header of a call that does not match the arguments. It returns "" if all match.
func ParamHeaderMismatch(definition, arguments json.RawMessage, given []Header) string {
	what := ""
	eachParamHeader(definition, arguments, func(header string, value json.RawMessage) {
		name, text, there := HeaderParam+header, "", false
		for _, f := range given {
			if strings.EqualFold(f.Name, name) {
				text, there = f.Value, true
			}
		}
		decoded, sound := DecodeHeaderValue(text)
		switch {
		case what != "":
		case value == nil && there:
			what = name + " is given, but the argument is not"
		case value != nil && !there:
			what = name + " is missing"
		case there && !sound:
			what = name + " has invalid characters or a broken =?base64?…?= encoding"
		case there && !headerMatchesArgument(decoded, value):
			what = name + " does not match the argument"
		}
	})
	return what
}

// eachParamHeader calls each for every parameter with an x-mcp-header. value is nil if the argument is missing or null.
func eachParamHeader(definition, arguments json.RawMessage, each func(header string, value json.RawMessage)) {
	if bytes.Contains(definition, []byte("x-mcp-header")) {
		eachParamHeaderInSchema(wirejson.Find(definition, "inputSchema"), arguments, 0, each)
	}
}

func eachParamHeaderInSchema(schema, arguments json.RawMessage, depth int, each func(string, json.RawMessage)) {
	if depth == maxParamHeaderDepth || wirejson.Kind(schema) != '{' {
		return
	}
	properties := wirejson.Find(schema, "properties")
	if wirejson.Kind(properties) != '{' {
		return
	}
	_ = wirejson.EachMember(properties, func(name, property []byte) error {
		if wirejson.Kind(property) != '{' {
			return nil
		}
		value := wirejson.Find(arguments, string(name))
		header, ok := wirejson.String(wirejson.Find(property, "x-mcp-header"))
		if !ok {
			eachParamHeaderInSchema(property, value, depth+1, each)
			return nil
		}
		switch wirejson.Kind(value) {
		case 'n', '{', '[': // only scalars are mirrored
			value = nil
		}
		each(header, value)
		return nil
	})
}

// argumentHeaderText returns the value of an argument as a header value.
func argumentHeaderText(value json.RawMessage) string {
	if text, ok := wirejson.String(value); ok {
		return text
	}
	return string(value)
}

// headerMatchesArgument reports whether a header matches an argument. Numbers may be written differently.
func headerMatchesArgument(header string, value json.RawMessage) bool {
	if header == argumentHeaderText(value) {
		return true
	}
	if wirejson.Kind(value) != '0' {
		return false
	}
	a, errA := strconv.ParseFloat(header, 64)
	b, errB := strconv.ParseFloat(string(value), 64)
	return errA == nil && errB == nil && a == b && a < 1<<53 && a > -1<<53
}
