package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"mcpproxy/internal/strictjson"
)

// A tool may want some of its arguments repeated in headers (x-mcp-header in
// its schema), for those who route by headers. They are only worth something
// when they say what the body says.

const mirrorPrefix = "Mcp-Param-"

// maxMirrorDepth is how deep in a schema a parameter may stand that is
// mirrored in a header.
const maxMirrorDepth = 16

// Mirrored are the headers that the tool wants for the arguments, for a client
// that has none to give them in.
func Mirrored(definition, arguments json.RawMessage) []Field { return mirrored(definition, arguments) }

// mirrored are the headers that the tool wants for the arguments.
func mirrored(definition, arguments json.RawMessage) []Field {
	var fields []Field
	eachMirror(definition, arguments, func(header string, value json.RawMessage) {
		if value != nil {
			fields = append(fields, Field{mirrorPrefix + header, headerText(plainText(value))})
		}
	})
	return fields
}

// Mismatch says which of the headers that came with a call do not say what its
// arguments say, "" when all do.
func Mismatch(definition, arguments json.RawMessage, given []Field) string {
	what := ""
	eachMirror(definition, arguments, func(header string, value json.RawMessage) {
		name, text, there := mirrorPrefix+header, "", false
		for _, f := range given {
			if strings.EqualFold(f.Name, name) {
				text, there = f.Value, true
			}
		}
		decoded, sound := plainHeader(text)
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
		mirror(strictjson.Find(definition, "inputSchema"), arguments, 0, each)
	}
}

func mirror(schema, arguments json.RawMessage, depth int, each func(string, json.RawMessage)) {
	if depth == maxMirrorDepth || strictjson.Kind(schema) != '{' {
		return
	}
	properties := strictjson.Find(schema, "properties")
	if strictjson.Kind(properties) != '{' {
		return
	}
	_ = strictjson.Members(properties, func(name, property []byte) error {
		if strictjson.Kind(property) != '{' {
			return nil
		}
		value := strictjson.Find(arguments, string(name))
		header, ok := strictjson.String(strictjson.Find(property, "x-mcp-header"))
		if !ok {
			mirror(property, value, depth+1, each)
			return nil
		}
		switch strictjson.Kind(value) {
		case 'n', '{', '[': // only what is plain is mirrored
			value = nil
		}
		each(header, value)
		return nil
	})
}

// plainText is a value as a header has it.
func plainText(value json.RawMessage) string {
	if text, ok := strictjson.String(value); ok {
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
	if strictjson.Kind(value) != '0' {
		return false
	}
	a, errA := strconv.ParseFloat(header, 64)
	b, errB := strconv.ParseFloat(string(value), 64)
	return errA == nil && errB == nil && a == b && a < 1<<53 && a > -1<<53
}

const encodedStart, encodedEnd = "=?base64?", "?="

// headerText is a text as the value of a header: as it is where that is plain
// ASCII and cannot be taken for anything else, else encoded.
func headerText(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, encodedStart)
	for i := 0; plain && i < len(text); i++ {
		plain = ' ' <= text[i] && text[i] <= '~'
	}
	if plain {
		return text
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// plainHeader undoes headerText.
func plainHeader(value string) (text string, ok bool) {
	if encoded, found := strings.CutPrefix(value, encodedStart); found {
		if encoded, found = strings.CutSuffix(encoded, encodedEnd); found {
			raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
			return string(raw), err == nil
		}
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}
