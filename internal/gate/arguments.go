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

// maxArguments limits the arguments of one call, in bytes.
const maxArguments = 4 << 20

var noArguments = json.RawMessage("{}")

// chooseArgsOrArgsJSON returns the arguments of a lane call as one JSON object. They are in args or args_json, and
// either parameter may contain the other form.
func chooseArgsOrArgsJSON(args, text json.RawMessage) (json.RawMessage, *problem.Problem) {
	form := "args"
	args, text = unwrapArguments(args), unwrapArguments(text)
	switch {
	case args != nil && text != nil:
		return nil, invalidArgsProblem("args and args_json are both given", "args")
	case text != nil:
		form, args = "args_json", text
	}
	return parseArgumentsObject(form, args)
}

// unwrapArguments returns an object unchanged, and the content of a string. It returns nil if args is empty or null.
func unwrapArguments(args json.RawMessage) json.RawMessage {
	if text, ok := wirejson.String(args); ok {
		args = json.RawMessage(strings.TrimSpace(text))
	}
	if len(args) == 0 || string(args) == "null" {
		return nil
	}
	return args
}

// parseArgumentsObject returns args if they are a valid JSON object within the limits, otherwise a problem.
func parseArgumentsObject(form string, args json.RawMessage) (json.RawMessage, *problem.Problem) {
	if args == nil {
		return noArguments, nil
	}
	if err := wirejson.Check(args, wirejson.Limits{Bytes: maxArguments}); err != nil {
		return nil, invalidArgsProblem(form+": "+err.Error(), form)
	}
	if kind := wirejson.Kind(args); kind != '{' {
		return nil, invalidArgsProblem(form+" is "+jsonKindText(kind)+", not an object", form)
	}
	return args, nil
}

func invalidArgsProblem(what, form string) *problem.Problem {
	return problem.New(problem.InvalidArgs, "Invalid arguments: "+what,
		"Give the tool's arguments once, as a JSON object: "+strings.TrimSuffix(form, "_json")+" {\"key\": value}.")
}

// jsonKindText returns the name of a kind of JSON value.
func jsonKindText(kind byte) string {
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

// checkAgainstSchema validates the arguments against the tool's schema in the configured mode. fit is "" if the
// arguments were not checked.
func checkAgainstSchema(t *catalog.Tool, args json.RawMessage, mode config.ArgumentValidation) (fit activity.SchemaFit, warnings []string, p *problem.Problem) {
	if mode == config.ValidateOff {
		return "", nil, nil
	}
	s := t.ArgumentSchema()
	if err := s.BrokenError(); err != nil {
		return "", []string{fmt.Sprintf("The input schema of '%s' cannot be used, so the arguments were not checked: %v", t.ID, err)}, nil
	}
	violations, err := s.CheckArguments(args)
	if err != nil {
		// The caller causes this error. If the call were not refused, every caller could disable the check.
		violations = []schema.Violation{{Message: err.Error()}}
	}
	if len(violations) == 0 {
		return activity.ArgumentsFit, nil, nil
	}
	if mode == config.ValidateWarn {
		for _, v := range violations { // violations contain keys of the arguments
			warnings = append(warnings, "The arguments do not match the input schema: "+redact.Text(violationText(v))+".")
		}
		return activity.ArgumentsUnfit, warnings, nil
	}
	return activity.ArgumentsUnfit, nil, schemaMismatchProblem(t, violations)
}

// schemaMismatchProblem returns the problem with the violations and the schema.
func schemaMismatchProblem(t *catalog.Tool, violations []schema.Violation) *problem.Problem {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = violationText(v)
	}
	return problem.Newf(problem.ArgsMismatch, "The arguments do not match the input schema of '%s': %s", t.ID, strings.Join(places, "; ")).
		WithHint("Change args to match the tool's inputSchema below, and call again.").
		With("violations", violations).
		With("inputSchema", t.InputSchema)
}

// violationText returns a violation on one line.
func violationText(v schema.Violation) string {
	if v.Path == "" {
		return v.Message
	}
	return v.Path + ": " + v.Message
}

// The limits of the problem about misplaced arguments.
const (
	maxMisplaced = 8       // number of names
	maxMended    = 1 << 10 // bytes of the corrected arguments
)

// misplacedArgsProblem returns the problem of a call with arguments next to the parameter args, or under another name
// than args; nil if there are none. It recognizes arguments of the tool by the names in the schema. The gate does not
// move misplaced arguments, because it checks and sends exactly the value that the caller gave.
func misplacedArgsProblem(unknown []UnknownArgument, t *catalog.Tool, args json.RawMessage) *problem.Problem {
	if len(unknown) == 0 {
		return nil
	}
	properties := wirejson.Find(t.InputSchema, "properties")
	names, meant := mergeMisplacedArgs(unknown, args, properties)
	what := misplacedNamesText(names) + " outside args"
	if len(names) == 0 {
		var name string
		if name, meant = findArgsUnderOtherName(unknown, args, properties); meant == nil {
			return nil
		}
		what = "there is no parameter '" + problem.ClipName(redact.Text(name)) + "'"
	}
	p := invalidArgsProblem(what+"; the arguments of the tool belong inside args", "args")
	if len(meant) <= maxMended {
		p.Hint = `Call again with "args": ` + string(meant) + " instead."
	}
	return p.With("parameter", "args")
}

// mergeMisplacedArgs returns the names of the arguments that are next to args, and args with these arguments added.
func mergeMisplacedArgs(unknown []UnknownArgument, args json.RawMessage, properties []byte) (names []string, meant json.RawMessage) {
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

// findArgsUnderOtherName returns the parameter that was used instead of args, and its value: an object with arguments of the
// tool, or its JSON text. It returns nil if there is none.
func findArgsUnderOtherName(unknown []UnknownArgument, args json.RawMessage, properties []byte) (name string, inside json.RawMessage) {
	if hasMemberWhere(args, func(string) bool { return true }) {
		return "", nil
	}
	for _, s := range unknown {
		inside, err := parseArgumentsObject("", unwrapArguments(s.Value))
		if err == nil && hasMemberWhere(inside, func(name string) bool { return wirejson.Find(properties, name) != nil }) {
			return s.Name, inside
		}
	}
	return "", nil
}

var errFound = errors.New("found")

func hasMemberWhere(object json.RawMessage, is func(name string) bool) bool {
	return wirejson.EachMember(object, func(name, _ []byte) error {
		if is(string(name)) {
			return errFound
		}
		return nil
	}) != nil
}

// misplacedNamesText returns names as the beginning of a sentence, with the matching verb.
func misplacedNamesText(names []string) string {
	if len(names) == 1 {
		return "'" + problem.ClipName(names[0]) + "' is"
	}
	var quoted []string
	for _, name := range names[:min(len(names), maxMisplaced)] {
		quoted = append(quoted, "'"+problem.ClipName(name)+"'")
	}
	if more := len(names) - maxMisplaced; more > 0 {
		quoted = append(quoted, strconv.Itoa(more)+" more")
	}
	return strings.Join(quoted, ", ") + " are"
}
