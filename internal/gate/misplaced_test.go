package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// TestMisplacedArguments checks that the names of arguments next to args are compared with the tool's schema, in
// every mode of validate_arguments, and that the size of the error is limited.
func TestMisplacedArguments(t *testing.T) {
	var properties, wide strings.Builder
	for i := range 40 {
		fmt.Fprintf(&properties, `"p%d":{},`, i)
		fmt.Fprintf(&wide, `,"p%d":%d`, i, i)
	}
	w := newWorld(t, func(c *config.Config) { c.ValidateArguments = config.ValidateOff },
		`{"name":"many","inputSchema":{"properties":{`+properties.String()+`"n":{}}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"free","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	const belong = "; the arguments of the tool belong inside args"
	for _, c := range []struct{ tool, args, strays, message, hint string }{
		{"many", `{}`, `{"n":1}`, "'n' is outside args" + belong, `Call again with "args": {"n":1} instead.`},
		{"many", `{"p1": 1}`, `{"n":1,"x":2}`, "'n' is outside args" + belong, `Call again with "args": {"p1": 1,"n":1} instead.`},
		{"many", ``, `{"x":{"n":1,"other":2}}`, "there is no parameter 'x'" + belong, `Call again with "args": {"n":1,"other":2} instead.`},
		{"many", ``, `{"x":"{\"n\":1}"}`, "there is no parameter 'x'" + belong, `Call again with "args": {"n":1} instead.`},
		{"many", ``, `{"n":"` + strings.Repeat("x", maxMended) + `"}`, "'n' is outside args" + belong, `Give the tool's arguments once, as a JSON object: args {"key": value}.`},
		{"many", ``, `{"n":1` + wide.String() + `}`, "'n', 'p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 33 more are outside args" + belong, ""},
		{"many", `{"p1":1}`, `{"x":{"n":1}}`, "", ""},
		{"many", ``, `{"x":{"other":1},"y":"text","z":"{\"n\":1,\"n\":2}","N":1}`, "", ""},
		{"free", ``, `{"n":1,"arguments":{"n":1}}`, "", ""},
	} {
		w.Events = nil
		r := LaneCall{CallTool: policy.CallToolRead, Name: "s:" + c.tool, Args: json.RawMessage(c.args), Unknown: strays(t, c.strays), Caller: anAgent}
		_, err := w.gate.Call(t.Context(), r)
		if c.message == "" {
			if err != nil {
				t.Errorf("%s %s: %v", c.args, c.strays, err)
			}
			continue
		}
		p := problem.From(err)
		if p == nil || p.Code != problem.InvalidArgs || p.Message != "Invalid arguments: "+c.message || c.hint != "" && p.Hint != c.hint {
			t.Errorf("%s %s: %+v", c.args, c.strays, p)
		}
		if len(w.Events) != 1 || w.Events[0] != "refuse" {
			t.Errorf("%s %s: %v", c.args, c.strays, w.Events)
		}
	}
}

// strays returns the members of an object, in order.
func strays(t *testing.T, object string) (all []UnknownArgument) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		s := UnknownArgument{Name: name.(string)}
		if err := d.Decode(&s.Value); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
