package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/schema"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
)

// maxArguments bounds the arguments of one call, in bytes.
const maxArguments = 4 << 20

var noArguments = json.RawMessage("{}")

// given returns the arguments of a call in a lane, which come in one of two forms,
// as the one JSON object that is judged and forwarded. A form that holds the other
// one is taken as what it is.
func given(args, text json.RawMessage) (json.RawMessage, *problem.Problem) {
	form := "args"
	args, text = meant(args), meant(text)
	switch {
	case args != nil && text != nil:
		return nil, invalidArgs("args and args_json are both given", "args")
	case text != nil:
		form, args = "args_json", text
	}
	return readArguments(form, args)
}

// meant returns what is given as the arguments: an object as it is, and what a
// string says; nil when that is nothing.
func meant(args json.RawMessage) json.RawMessage {
	if text, ok := wirejson.String(args); ok {
		args = json.RawMessage(strings.TrimSpace(text))
	}
	if len(args) == 0 || string(args) == "null" {
		return nil
	}
	return args
}

// readArguments returns arguments that are fit to be judged and forwarded, an
// object. The problem is why they are not.
func readArguments(form string, args json.RawMessage) (json.RawMessage, *problem.Problem) {
	if args == nil {
		return noArguments, nil
	}
	if err := wirejson.Check(args, wirejson.Limits{Bytes: maxArguments}); err != nil {
		return nil, invalidArgs(form+": "+err.Error(), form)
	}
	if kind := wirejson.Kind(args); kind != '{' {
		return nil, invalidArgs(form+" is "+kindName(kind)+", not an object", form)
	}
	return args, nil
}

func invalidArgs(what, form string) *problem.Problem {
	return problem.New(problem.InvalidArgs, "Invalid arguments: "+what,
		"Give the tool's arguments once, as a JSON object: "+strings.TrimSuffix(form, "_json")+" {\"key\": value}.")
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

// checkArguments holds the arguments to the tool's schema as the configuration
// says. fit is what came of it; "" when they were not checked.
func checkArguments(t *catalog.Tool, args json.RawMessage, mode config.Validation) (fit activity.Fit, warnings []string, p *problem.Problem) {
	if mode == config.ValidateOff {
		return "", nil, nil
	}
	s := t.Arguments()
	if err := s.Broken(); err != nil {
		return "", []string{fmt.Sprintf("The input schema of '%s' cannot be used, so the arguments were not checked: %v", t.ID, err)}, nil
	}
	violations, err := s.Check(args)
	if err != nil {
		// The caller made them so: letting them through would let every caller
		// switch the check off.
		violations = []schema.Violation{{Message: err.Error()}}
	}
	if len(violations) == 0 {
		return activity.Fits, nil, nil
	}
	if mode == config.ValidateWarn {
		for _, v := range violations { // which name keys of the arguments
			warnings = append(warnings, "The arguments do not fit the input schema: "+redact.Text(where(v))+".")
		}
		return activity.Unfit, warnings, nil
	}
	return activity.Unfit, nil, argsMismatch(t, violations)
}

// argsMismatch returns where the arguments violate the schema, and the schema.
func argsMismatch(t *catalog.Tool, violations []schema.Violation) *problem.Problem {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = where(v)
	}
	return problem.Newf(problem.ArgsMismatch, "The arguments do not fit the input schema of '%s': %s", t.ID, strings.Join(places, "; ")).
		WithHint("Change args to fit the tool's inputSchema, which is given here, and call again.").
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

// The bounds of what a refusal says of misplaced arguments.
const (
	maxMisplaced = 8       // names
	maxMended    = 1 << 10 // bytes of the arguments as they are meant to be
)

// misplaced refuses a call that gives arguments of the tool, going by the names in
// its schema, beside the parameter args: without them the server would be asked for
// something else than was meant. They are not taken from there, so that what is
// judged and forwarded is one value, which was given as the arguments.
func misplaced(unknown []UnknownArgument, t *catalog.Tool, args json.RawMessage) *problem.Problem {
	if len(unknown) == 0 {
		return nil
	}
	properties := wirejson.Find(t.InputSchema, "properties")
	names, meant := beside(unknown, args, properties)
	what := listed(names) + " beside args"
	if len(names) == 0 {
		var name string
		if name, meant = instead(unknown, args, properties); meant == nil {
			return nil
		}
		what = "there is no parameter '" + problem.ClipName(redact.Text(name)) + "'"
	}
	p := invalidArgs(what+"; the arguments of the tool belong inside args", "args")
	if len(meant) <= maxMended {
		p.Hint = `Call again with "args": ` + string(meant) + " instead."
	}
	return p.With("parameter", "args")
}

// beside returns the names of arguments that stand beside args, and the arguments
// with them.
func beside(unknown []UnknownArgument, args json.RawMessage, properties []byte) (names []string, meant json.RawMessage) {
	for _, s := range unknown {
		if wirejson.Find(properties, s.Name) == nil {
			continue
		}
		names = append(names, s.Name)
		if len(args) <= maxMended && wirejson.Find(args, s.Name) == nil {
			args = wirejson.SetMember(args, s.Name, s.Value)
		}
	}
	return names, args
}

// instead returns what is given in the place of args, an object with arguments of
// the tool or its text, and under which name; nil when there is none.
func instead(unknown []UnknownArgument, args json.RawMessage, properties []byte) (name string, inside json.RawMessage) {
	if anyMember(args, func(string) bool { return true }) {
		return "", nil
	}
	for _, s := range unknown {
		inside, err := readArguments("", meant(s.Value))
		if err == nil && anyMember(inside, func(name string) bool { return wirejson.Find(properties, name) != nil }) {
			return s.Name, inside
		}
	}
	return "", nil
}

var errFound = errors.New("found")

func anyMember(object json.RawMessage, is func(name string) bool) bool {
	return wirejson.EachMember(object, func(name, _ []byte) error {
		if is(string(name)) {
			return errFound
		}
		return nil
	}) != nil
}

// listed is names as a sentence lists them, with its verb.
func listed(names []string) string {
	if len(names) == 1 {
		return "'" + problem.ClipName(names[0]) + "' stands"
	}
	var quoted []string
	for _, name := range names[:min(len(names), maxMisplaced)] {
		quoted = append(quoted, "'"+problem.ClipName(name)+"'")
	}
	if more := len(names) - maxMisplaced; more > 0 {
		quoted = append(quoted, strconv.Itoa(more)+" more")
	}
	return strings.Join(quoted, ", ") + " stand"
}
