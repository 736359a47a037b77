package mcpserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
)

// An agent's proposals, in the forms in which models send them.
func TestProposal(t *testing.T) {
	want := ops.AddServerRequest{Name: "n", Launch: config.Launch{Command: "npx", Args: []string{"-y", "p"}, Env: map[string]string{"A": "1"}}}
	for _, c := range []struct{ args, refused string }{
		{`"args_json":"[\"-y\",\"p\"]","env_json":"{\"A\":\"1\"}"`, ""},
		{`"args_json":["-y","p"],"env_json":{"A":"1"}`, ""},
		{`"args":["-y","p"],"env":{"A":"1"}`, ""},
		{`"args":"[\"-y\",\"p\"]","env":"{\"A\":\"1\"}"`, ""},
		{`"args":null,"args_json":["-y","p"],"env_json":{"A":"1"}`, ""},
		{`"args":["-y"],"args_json":["p"]`, "There are both args_json and args"},
		{`"env":{},"env_json":{}`, "There are both env_json and env"},
		{`"args":{"0":"-y"}`, "Invalid args"},
		{`"args":"-y p"`, "Invalid args"},
		{`"args":["-y",1]`, "Invalid args"},
		{`"env":["A=1"]`, "Invalid env"},
		{`"env":{"A":"${env:HOME}"}`, "Invalid env: a server that an agent proposes may not refer"},
		{`"headers":{"A":"1"}`, "no parameter headers"},
	} {
		a := toolArguments{tool: toolUpstreamServers, raw: []byte(`{"operation":"add","name":"n","command":"npx",` + c.args + `}`)}
		got := readProposedServer(&a)
		switch {
		case c.refused == "" && a.bad == nil:
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.args, diff)
			}
		case c.refused == "" || a.bad == nil || !strings.Contains(a.bad.Message, c.refused):
			t.Errorf("%s: %v", c.args, a.bad)
		case !strings.Contains(a.bad.Hint, "again") && !strings.Contains(a.bad.Hint, "Give") && !strings.Contains(a.bad.Hint, "Propose"):
			t.Errorf("%s: the hint is %q", c.args, a.bad.Hint)
		}
	}
}
