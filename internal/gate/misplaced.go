package gate

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

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
		what = "there is no parameter '" + problem.Brief(redact.Text(name)) + "'"
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
	return wirejson.Members(object, func(name, _ []byte) error {
		if is(string(name)) {
			return errFound
		}
		return nil
	}) != nil
}

// listed is names as a sentence lists them, with its verb.
func listed(names []string) string {
	if len(names) == 1 {
		return "'" + problem.Brief(names[0]) + "' stands"
	}
	var quoted []string
	for _, name := range names[:min(len(names), maxMisplaced)] {
		quoted = append(quoted, "'"+problem.Brief(name)+"'")
	}
	if more := len(names) - maxMisplaced; more > 0 {
		quoted = append(quoted, strconv.Itoa(more)+" more")
	}
	return strings.Join(quoted, ", ") + " stand"
}
