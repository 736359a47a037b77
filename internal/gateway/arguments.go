package gateway

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/schema"
	"mcpproxy/internal/strictjson"
)

// maxArguments bounds the arguments of one call, in bytes.
const maxArguments = 4 << 20

var noArguments = json.RawMessage("{}")

// readArguments gives the arguments as the one JSON object that is judged and
// forwarded.
func readArguments(req *CallRequest) (json.RawMessage, *problem.Problem) {
	switch {
	case req.ArgsProblem != "":
		return nil, invalidArgs(req.ArgsProblem)
	case req.Args != nil && req.ArgsJSON != nil:
		return nil, invalidArgs("args and args_json are both given")
	case req.Args == nil && req.ArgsJSON == nil:
		return noArguments, nil
	}
	form, args := "args", []byte(req.Args)
	if req.ArgsJSON != nil {
		form, args = "args_json", []byte(*req.ArgsJSON)
	}
	if err := strictjson.Check(args, strictjson.Limits{Bytes: maxArguments}); err != nil {
		return nil, invalidArgs(form + ": " + err.Error())
	}
	if kind := strictjson.Kind(args); kind != '{' {
		return nil, invalidArgs(form + " is " + kindName(kind) + ", not an object")
	}
	return args, nil
}

func invalidArgs(what string) *problem.Problem {
	return problem.New(problem.InvalidArgs, "Invalid arguments: "+what,
		"Give the tool's arguments once, as a JSON object: args {\"key\": value} or args_json with the same as text.")
}

func kindName(kind byte) string {
	switch kind {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case '0':
		return "a number"
	}
	return "empty"
}

// argsMismatch says where the arguments violate the schema, and gives the schema.
func argsMismatch(t *catalog.Tool, violations []schema.Violation) *problem.Problem {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = where(v)
	}
	return problem.Newf(problem.ArgsMismatch, "The arguments do not fit the input schema of '%s': %s", t.ID, strings.Join(places, "; ")).
		WithHint("Change the arguments to fit details.inputSchema and call again.").
		With("violations", violations).
		With("inputSchema", t.InputSchema)
}

// where is a violation on one line.
func where(v schema.Violation) string {
	if v.Path == "" {
		return v.Message
	}
	return v.Path + ": " + v.Message
}

// maxRecordedName bounds a name that was no tool id, in bytes.
const maxRecordedName = 200

// clip shortens what goes into a record though nobody checked it.
func clip(s string) string { return clipTo(s, maxRecordedName) }

func clipTo(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\uFFFD") + "…"
}
