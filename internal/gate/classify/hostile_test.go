package classify

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

// TestHostileLines checks that a line that only looks like a read never gets a less dangerous lane than its effect.
func TestHostileLines(t *testing.T) {
	testHostile(t, "testdata/hostile.txt", classifyShell)
}

// TestHostileStatements checks the same for SQL, including lines that a client of the database executes.
func TestHostileStatements(t *testing.T) {
	testHostile(t, "testdata/hostile-sql.txt", classifySQL)
}

func testHostile(t *testing.T, file string, classify func(string) verdict) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\u00a0`, "\u00a0", `\x1b`, "\x1b")
	for _, s := range sectionfile.Parse(string(text)) {
		want := map[string]policy.Operation{"write": policy.Write, "destructive": policy.Destructive}[s.Head]
		for _, line := range s.Lines {
			line := unescape.Replace(line)
			if v := classify(line); v.Operation < want {
				t.Errorf("%q: %s, want %s", line, v.Operation, want)
			}
		}
	}
}

// TestArgumentsNextToACommand checks that arguments in other members are classified together with the command,
// whatever the spelling and position of the member.
func TestArgumentsNextToACommand(t *testing.T) {
	shell := ArgumentRule{By: policy.ByShell, Argument: "$.command"}
	kube := ArgumentRule{By: policy.ByCLI, Argument: "$.args", Program: "kubectl"}
	deep := ArgumentRule{By: policy.ByShell, Argument: "$.run.command"}
	for _, c := range []struct {
		rule ArgumentRule
		args string
		want policy.Operation
	}{
		{shell, `{"command":"find","args":". -delete"}`, policy.Destructive},
		{shell, `{"command":"find","args":[".","-delete"]}`, policy.Destructive},
		{shell, `{"command":"find","Args":[". -delete"]}`, policy.Destructive},
		{shell, `{"command":"find","extra_args":". -delete"}`, policy.Destructive},
		{shell, `{"command":"find","extraArgs":[".","-delete"]}`, policy.Destructive},
		{shell, `{"command":["find","."],"args":["-delete"]}`, policy.Destructive},
		{shell, `{"command":"find","options":{"nested":{"arguments":[".","-delete"]}}}`, policy.Destructive},
		{shell, `{"command":"find","options":[".","-delete"]}`, policy.Destructive},
		{shell, `{"command":"ls","args":"; rm x"}`, policy.Destructive},
		{shell, `{"command":"ls","args":["; rm x"]}`, policy.Destructive},
		{shell, `{"command":"bash","args":["-c","rm x"]}`, policy.Destructive},
		{shell, `{"command":"./run","args":"rm x"}`, policy.Destructive},
		{shell, `{"command":"sort","argv":["-o","f","a"]}`, policy.Write},
		{shell, `{"command":"ls","arguments":{"a":"-x"}}`, policy.Write},
		{shell, `{"command":"ls","ENV":{"A":"b"}}`, policy.Write},
		{shell, `{"command":"ls","options":{"env":{"A":"b"}}}`, policy.Write},
		{shell, `{"command":"ls","env_vars":["A=b"]}`, policy.Write},
		{shell, `{"command":"ls","shell":"/tmp/x"}`, policy.Write},
		{shell, `{"command":"ls","Command":"rm x"}`, policy.Destructive},
		{shell, `{"command":"ls","cmd":"rm x"}`, policy.Destructive},
		{shell, `{"command":"ls","commands":["ls","rm x"]}`, policy.Destructive},
		{deep, `{"run":{"command":"find","args":". -delete"}}`, policy.Destructive},
		{deep, `{"run":{"command":"find"},"args":". -delete"}`, policy.Destructive},
		{kube, `{"args":"get pods","flags":["--kubeconfig","f"]}`, policy.Write},
		{kube, `{"args":"get pods","command":"delete pod x"}`, policy.Destructive},
		{shell, `{"command":"ls","args":["-l"]}`, policy.Read},
		{shell, `{"command":"ls","args":"-l","timeout":5,"cwd":"/x","options":{"timeout":5},"shell":"/bin/bash","env":{}}`, policy.Read},
		{shell, `{"command":"ls","shell":true,"description":"rm x"}`, policy.Read},
		{kube, `{"args":["get","pods"],"namespace":"x"}`, policy.Read},
		{shell, `{"command":"ls"` + strings.Repeat(`,"args":"a"`, maxNeighbours+1) + `}`, policy.Destructive},
	} {
		if got := c.rule.Classify(json.RawMessage(c.args)); got.Operation != c.want && (got.Operation < c.want || c.want == policy.Read) {
			t.Errorf("%s: %s (%s), want %s", c.args, got.Operation, got.Word, c.want)
		}
	}
	sql, graphql := ArgumentRule{By: policy.BySQL, Argument: "$.sql"}, ArgumentRule{By: policy.ByGraphQL, Argument: "$.query"}
	for args, want := range map[string]policy.Operation{
		`{"sql":"SELECT 1","query":"DROP TABLE x"}`: policy.Destructive, `{"sql":"SELECT 1","Statements":["SELECT 1","UPDATE t SET a=1"]}`: policy.Write,
		`{"sql":"SELECT 1","statements":["` + strings.Repeat(`SELECT 1","`, maxNeighbours) + `SELECT 1"]}`: policy.Destructive, `{"sql":"SELECT 1","name":"DROP TABLE x","query":""}`: policy.Read,
	} {
		if got := sql.Classify(json.RawMessage(args)); got.Operation != want {
			t.Errorf("%s: %s (%s), want %s", args, got.Operation, got.Word, want)
		}
	}
	if got := graphql.Classify(json.RawMessage(`{"query":"{ a }","mutation":"mutation { b }"}`)); got.Operation != policy.Write {
		t.Errorf("a mutation next to a query: %s", got.Operation)
	}
	http := ArgumentRule{By: policy.ByHTTP, Argument: "$.method"}
	for _, args := range []string{`{"method":"GET","headers":{"X-HTTP-Method\u002dOverride":"DELETE"}}`, `{"method":"GET","headers":["X-HTTP-Method: PUT"]}`, `{"method":"GET","url":"https://h/?_method=delete"}`} {
		if got := http.Classify(json.RawMessage(args)); got.Operation < policy.Write {
			t.Errorf("%s: %s", args, got.Operation)
		}
	}
}
