package classify

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

func said(v policy.ArgumentEffect) string {
	return strings.TrimSpace(v.Operation.String() + " " + v.Word)
}

func TestJudge(t *testing.T) {
	sql := ArgumentRule{By: policy.BySQL, Argument: "$.sql"}
	deep := ArgumentRule{By: policy.BySQL, Argument: "$.a.queries"}
	shell := ArgumentRule{By: policy.ByShell, Argument: "$.command"}
	kube := ArgumentRule{By: policy.ByCLI, Argument: "$.command", Program: "kubectl"}
	http := ArgumentRule{By: policy.ByHTTP, Argument: "$.method"}
	get := ArgumentRule{By: policy.ByHTTP, Argument: "$.method", Default: "GET"}
	graph := ArgumentRule{By: policy.ByGraphQL, Argument: "$.query"}
	act := ArgumentRule{By: policy.ByAction, Argument: "$.op", Read: []string{"list", "get_*"}, Destructive: []string{"delete"}}
	for _, c := range []struct {
		rule       ArgumentRule
		args, want string
	}{
		{sql, `{"sql":"select 1"}`, "read"}, {sql, `{"sql":"DROP TABLE x"}`, "destructive DROP TABLE"}, {sql, `{}`, "write no $.sql"}, {sql, `{"sql":null}`, "write no $.sql"},
		{sql, `{"sql":7}`, "write no text in $.sql"}, {sql, `{"sql":["select 1"]}`, "read"}, {sql, `{"sql":["select 1","select 2"]}`, "write several statements"}, {sql, `{"sql":["select 1",{"x":1}]}`, "write no text in $.sql"},
		{sql, `{"sql":"DROP\u0020TABLE x"}`, "destructive DROP TABLE"}, {sql, `{"sql":[]}`, "write nothing to judge"}, {sql, `{"SQL":"select 1"}`, "write no $.sql"},
		{deep, `{"a":{"queries":["select 1"]}}`, "read"}, {deep, `{"a":[{"queries":"select 1"},{"queries":"drop table x"}]}`, "destructive DROP TABLE"}, {deep, `{"a":"x"}`, "write no $.a.queries"},
		{shell, `{"command":"ls"}`, "read"}, {shell, `{"command":["ls","-l"]}`, "read"}, {shell, `{"command":["rm","x"]}`, "destructive rm"}, {shell, `{"command":["ls","; rm x"]}`, "read"},
		{shell, `{"command":"find","args":["-delete"]}`, "destructive find -delete"}, {shell, `{"command":"ls","args":["-l"]}`, "read"}, {shell, `{"command":"ls","env":{"LD_PRELOAD":"x"}}`, "write env"}, {shell, `{"command":"cat","stdin":"x"}`, "write stdin"},
		{shell, `{"command":"ls","args":[]}`, "read"}, {shell, `{"command":"ls","args":[1]}`, "write arguments that are no texts"},
		{kube, `{"command":"get pods"}`, "read"}, {kube, `{"command":"kubectl get pods"}`, "read"}, {kube, `{"command":"delete pod x"}`, "destructive kubectl delete"}, {kube, `{"command":"get pods; rm x"}`, "destructive rm"}, {kube, `{"command":["get","pods"]}`, "read"},
		{http, `{"method":"GET"}`, "read"}, {http, `{"method":" head "}`, "read"}, {http, `{"method":"POST"}`, "write POST"}, {http, `{"method":"delete"}`, "destructive DELETE"}, {http, `{}`, "write no $.method"}, {http, `{"method":""}`, "write no method"},
		{get, `{"url":"x"}`, "read"}, {http, `{"method":"GET","headers":{"X-HTTP-Method-Override":"DELETE"}}`, "write a method that is overridden"},
		{graph, `{"query":"{ a { b } }"}`, "read"}, {graph, `{"query":"query Q($a: Int = 1) @x(y: \"mutation {\") { a(b: {c: \"}\"}) { ...F } } fragment F on A { d }"}`, "read"}, {graph, `{"query":"subscription { a }"}`, "read"},
		{graph, `{"query":"mutation { createX(a: 1) { id } }"}`, "write mutation"}, {graph, `{"query":"query { a } mutation M { deleteRepo(id: 1) { id } }"}`, "destructive mutation deleteRepo"}, {graph, `{"query":"mutation { x: deleteRepo { id } }"}`, "destructive mutation deleteRepo"},
		{graph, `{"query":"mutation { ...F } fragment F on M { removeUser { id } }"}`, "destructive mutation removeUser"}, {graph, `{"query":"mutation { ... on M { removeUser { id } } }"}`, "destructive mutation removeUser"},
		{graph, `{"query":"# query\nmutation{createX}"}`, "write mutation"}, {graph, `{"query":"{ a"}`, "write no document of GraphQL"}, {graph, `{"query":"drop"}`, "write no document of GraphQL"}, {graph, `{"query":""}`, "write no document of GraphQL"}, {graph, `{"query":"{ a(b: \"\"\" } mutation { x } \\\"\"\" \"\"\") }"}`, "read"},
		{graph, `{"query":"{\"query\":\"mutation { a }\"}"}`, "write mutation"}, {graph, `{"query":{"query":"mutation { deleteRepo }"}}`, "destructive mutation deleteRepo"}, {graph, `{"query":{"query":"{ a }"}}`, "read"}, {graph, `{"query":["{ a }","mutation { b }"]}`, "write mutation"}, {graph, `{"query":{"id":"x"}}`, "write id"},
		{act, `{"op":"list"}`, "read"}, {act, `{"op":"get_x"}`, "read"}, {act, `{"op":"delete"}`, "destructive delete"}, {act, `{"op":"LIST"}`, "write LIST"}, {act, `{"op":"other"}`, "write other"}, {act, `{}`, "write no $.op"},
	} {
		if got := said(c.rule.Classify(json.RawMessage(c.args))); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.rule.By, c.args, got, c.want)
		}
	}
}

func TestDetect(t *testing.T) {
	for definition, want := range map[string]string{
		`{"name":"query","description":"Run a read-only SQL query","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}`:                   "sql $.sql",
		`{"name":"read_query","inputSchema":{"properties":{"query":{"type":"string","description":"The SELECT SQL query to execute"}}}}`:                      "sql $.query",
		`{"name":"search","description":"Search the issues","inputSchema":{"properties":{"query":{"type":"string"}}}}`:                                        "",
		`{"name":"run_command","description":"Run a command","inputSchema":{"properties":{"command":{"type":"string"},"cwd":{"type":"string"}}}}`:             "shell $.command",
		`{"name":"execute_powershell","inputSchema":{"properties":{"command":{"type":"string"}}}}`:                                                            "",
		`{"name":"redis_command","inputSchema":{"properties":{"command":{"type":"string"}}}}`:                                                                 "",
		`{"name":"kubectl","inputSchema":{"properties":{"command":{"type":"string"}}}}`:                                                                       "cli $.command kubectl",
		`{"name":"gh_run","inputSchema":{"properties":{"args":{"type":"array","items":{"type":"string"}}}}}`:                                                  "cli $.args gh",
		`{"name":"request","inputSchema":{"properties":{"method":{"enum":["GET","POST"],"default":"GET"},"url":{"type":"string"}}}}`:                          "http $.method default GET",
		`{"name":"fetch","inputSchema":{"properties":{"url":{"type":"string"},"method":{"type":"string"}}}}`:                                                  "http $.method",
		`{"name":"graphql","inputSchema":{"properties":{"query":{"type":"string"}}}}`:                                                                         "graphql $.query",
		`{"name":"manage_user","inputSchema":{"properties":{"action":{"type":"string","enum":["list","create","delete"]}}}}`:                                  "action $.action read list destructive delete",
		`{"name":"sort","inputSchema":{"properties":{"mode":{"type":"string","enum":["asc","desc"]}}}}`:                                                       "",
		`{"name":"get_node","inputSchema":{"properties":{"mode":{"type":"string","enum":["info","docs","search_properties"]}}}}`:                              "",
		`{"name":"get_user","inputSchema":{"properties":{"id":{"type":"string"}}}}`:                                                                           "",
		`{"name":"count","description":"How many rows a SQL query has","inputSchema":{"properties":{"limit":{"type":"integer"},"query":{"type":"integer"}}}}`: "",
		`{"name":"none"}`: "",
	} {
		d, err := tool.ParseDefinition("s", json.RawMessage(definition))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if r := detectArgumentRule(&d); r != nil {
			got = string(r.By) + " " + r.Argument
			for what, is := range map[string]string{" default ": r.Default, " ": r.Program} {
				if is != "" {
					got += what + is
				}
			}
			if len(r.Read) > 0 {
				got += " read " + strings.Join(r.Read, ",")
			}
			if len(r.Destructive) > 0 {
				got += " destructive " + strings.Join(r.Destructive, ",")
			}
			if r.Declared {
				t.Errorf("%s: a detected rule must not be declared", definition)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", definition, got, want)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("graphql", `{"q":"mutation { ...F } fragment F on M { removeUser(a: {b: \"}\"}) }"}`)
	f.Add("http", `{"q":"GET"}`)
	f.Add("cli", `{"q":["a","b"],"args":"x"}`)
	f.Add("action", `{"q":"x"}`)
	f.Fuzz(func(t *testing.T, by, args string) {
		if !json.Valid([]byte(args)) {
			return
		}
		r := ArgumentRule{By: policy.ArgumentKind(by), Argument: "$.q", Program: "git"}
		if v := r.Classify(json.RawMessage(args)); v.Operation == policy.NoOperation || v.Operation > policy.Read && v.Word == "" || v.By != r.By {
			t.Fatalf("%s: %+v", args, v)
		}
	})
}
