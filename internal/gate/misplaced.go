package gate

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

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
func misplaced(c *call) *problem.Problem {
	if len(c.unknown) == 0 {
		return nil
	}
	properties := wirejson.Find(c.tool.InputSchema, "properties")
	names, meant := beside(c, properties)
	what := listed(names) + " beside args"
	if len(names) == 0 {
		var name string
		if name, meant = instead(c, properties); meant == nil {
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
func beside(c *call, properties []byte) (names []string, args json.RawMessage) {
	args = c.parts.Arguments
	for _, s := range c.unknown {
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
func instead(c *call, properties []byte) (name string, args json.RawMessage) {
	if anyMember(c.parts.Arguments, func(string) bool { return true }) {
		return "", nil
	}
	for _, s := range c.unknown {
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
