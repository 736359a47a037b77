package classify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

// define returns a definition with a name, a description and a schema.
func define(t testing.TB, name, description string, schema string) tool.Definition {
	t.Helper()
	if schema == "" {
		schema = `{"type":"object"}`
	}
	raw, err := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": json.RawMessage(schema)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := tool.ParseDefinition("s", raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestInfer(t *testing.T) {
	for _, c := range []struct {
		name, description, schema string
		want                      policy.Operation
		reason                    string // a part of the reason
	}{
		// Names in different spellings.
		{"get_user", "", "", policy.Read, `its name says "get"`},
		{"listUsers", "", "", policy.Read, "list"},
		{"users.get", "", "", policy.Read, "get"},
		{"HTTPServerList", "", "", policy.Read, "list"},
		{"search-issues2", "", "", policy.Read, "search"},
		{"create_issue", "", "", policy.Write, `"create"`},
		{"IssueCreate", "", "", policy.Write, `"create"`},
		{"delete_repo", "", "", policy.Destructive, `its name says "delete"`},
		{"repo_delete", "", "", policy.Destructive, "delete"},
		{"bulkDelete", "", "", policy.Destructive, "delete"},
		{"users.delete", "", "", policy.Destructive, "delete"},
		{"repo/branches/remove", "", "", policy.Destructive, "remove"},
		{"DELETE_ALL", "", "", policy.Destructive, "delete"},
		{"DropTable", "", "", policy.Destructive, "drop"},
		{"purgeCDNCache", "", "", policy.Destructive, "purge"},
		{"rm", "", "", policy.Destructive, "rm"},
		{"deletes_user", "", "", policy.Destructive, "deletes"},
		{"get_d\u0435lete", "Gets things", "", policy.Write, "beyond ASCII"},
		{"get_de\u200blete", "Gets things", "", policy.Write, "beyond ASCII"},
		// A read verb does not hide other verbs.
		{"get_or_create_user", "", "", policy.Write, "create"},
		{"search_and_replace", "", "", policy.Write, "replace"},
		{"fetch_and_update", "", "", policy.Write, "update"},
		{"list_and_delete", "", "", policy.Destructive, "delete"},
		{"list_delete", "Delete a list", "", policy.Destructive, "delete"},
		{"view_update", "", "", policy.Write, ""},
		{"compute_disk_delete", "", "", policy.Destructive, "delete"},
		{"get_deleted_items", "", "", policy.Write, `its name says "deleted"`},
		{"check_delete", "", "", policy.Write, "delete"},
		{"get_bulkdelete_jobs", "", "", policy.Write, "bulkdelete"},
		{"check_in", "", "", policy.Write, "check in"},
		{"mark_as_read", "", "", policy.Write, "mark"},
		{"resolve_comment", "", "", policy.Write, "resolve"},
		{"git_fetch", "Fetch from a remote", "", policy.Write, "fetch"},
		// Nouns that look like verbs.
		{"get_updates", "", "", policy.Read, "get"},
		{"list_posts", "", "", policy.Read, "list"},
		{"list_workflow_runs", "", "", policy.Read, "list"},
		{"get_open_orders", "", "", policy.Read, "get"},
		{"dropbox_list_files", "", "", policy.Read, "list"},
		{"get_skills", "", "", policy.Read, "get"},
		{"list_dropdowns", "", "", policy.Read, "list"},
		{"git_log", "Show the commits", "", policy.Read, `its description begins with "show"`},
		{"git_commit", "Record changes", "", policy.Write, ""},
		{"clickup_update_task", "Get a task and update it", "", policy.Write, ""},
		// No verb: the description decides.
		{"weather", "Returns the weather of a city", "", policy.Read, `begins with "returns"`},
		{"weather", "This tool can be used to get the weather", "", policy.Read, "get"},
		{"weather", "", "", policy.Write, "nothing says that it only reads"},
		{"weather", "The weather", "", policy.Write, "nothing says"},
		{"thing", "Deletes a thing", "", policy.Destructive, `its description begins with "deletes"`},
		{"process", "Permanently removes all rows", "", policy.Destructive, ""},
		{"initiate_login", "Get a token", "", policy.Write, ""},
		// Effects in the description.
		{"get_user", "Gets a user and deletes the session", "", policy.Write, `its description says "deletes"`},
		{"get_user", "Gets a user. The session is deleted afterwards.", "", policy.Write, "deleted"},
		{"get_user", "Gets a user, also one that was deleted", "", policy.Read, ""},
		{"get_user", "Gets a user. Creates it when there is none.", "", policy.Write, `"creates"`},
		{"get_user", "Get or create a user", "", policy.Write, `"create"`},
		{"get_user", "Creates a user", "", policy.Write, `its description begins with "creates"`},
		{"get_user", "获取用户并删除会话", "", policy.Write, "删除"},
		{"update_user", "Updates a user. This cannot be undone and removes the old data.", "", policy.Destructive, "final"},
		// Effects in the parameters.
		{"query", "Run a read-only SQL query", `{"properties":{"sql":{"type":"string"}}}`, policy.Write, "runs what it is given|sql|run"},
		{"get_rows", "Get rows", `{"properties":{"sql":{"type":"string"}}}`, policy.Write, `it takes "sql"`},
		{"get_rows", "Get rows", `{"properties":{"force":{"type":"boolean"}}}`, policy.Write, `it takes "force"`},
		{"get_page", "Get a page", `{"properties":{"options":{"type":"object","properties":{"script":{"type":"string"}}}}}`, policy.Write, `it takes "script"`},
		{"get_airport", "Get an airport", `{"properties":{"code":{"type":"string","description":"IATA code"}}}`, policy.Read, ""},
		{"get_result", "Get a result", `{"properties":{"code":{"type":"string"}}}`, policy.Write, `it takes "code"`},
		{"execute_command", "Run a command", `{"properties":{"command":{"type":"string"}}}`, policy.Destructive, "it runs what it is given"},
		{"browser_evaluate", "Evaluate JavaScript on the page", `{"properties":{"function":{"type":"string"}}}`, policy.Destructive, "runs what it is given"},
		{"eval", "", `{"properties":{"expression":{"type":"string"}}}`, policy.Destructive, ""},
		// A parameter that accepts a program, or a query that can write, whatever its name is.
		{"get_data", "Get data", `{"properties":{"query":{"type":"string","description":"SQL query"}}}`, policy.Write, `it takes "query"`},
		{"read_query", "Execute a SELECT query", `{"properties":{"query":{"type":"string","description":"The SELECT SQL query to execute"}}}`, policy.Write, `it takes "query"`},
		{"search_graph", "Search the graph", `{"properties":{"q":{"type":["string","null"],"description":"Query, in Cypher."}}}`, policy.Write, `it takes "q"`},
		{"get_entities", "", `{"properties":{"text":{"description":"A SPARQL query or update"}}}`, policy.Write, `it takes "text"`},
		{"fetch_repo", "", `{"properties":{"rawGraphQL":{"type":"string"},"body":{"type":"string","description":"GraphQL document"}}}`, policy.Write, `it takes "body"`},
		{"get_title", "", `{"properties":{"input":{"type":"string","description":"JavaScript to evaluate on the page"}}}`, policy.Write, `it takes "input"`},
		{"check_host", "", `{"properties":{"what":{"type":"string","description":"Command to run on the host"}}}`, policy.Write, `it takes "what"`},
		{"list_rows", "Lists rows", `{"properties":{"filter":{"type":"string","description":"Raw SQL WHERE clause"}}}`, policy.Write, `it takes "filter"`},
		{"list_rows", "Lists rows", `{"properties":{"raw_sql_query":{"type":"string"}}}`, policy.Write, `it takes "raw_sql_query"`},
		{"get_rows", "Get the rows of a SQL query", `{"properties":{"query":{"type":"string"}}}`, policy.Write, `"query", which may be code`},
		{"graphql_query", "", `{"properties":{"query":{"type":"string"}}}`, policy.Write, `"query", which may be code`},
		{"run_query", "", `{"properties":{"query":{"type":"string","description":"Cypher query"}}}`, policy.Destructive, "it runs what it is given"},
		// Languages that only search, and descriptions that only mention code.
		{"search_issues", "Search issues with JQL", `{"properties":{"jql":{"type":"string","description":"JQL query"}}}`, policy.Read, ""},
		{"search_logs", "", `{"properties":{"query":{"type":"string","description":"KQL query"}}}`, policy.Read, ""},
		{"search_code", "Search code", `{"properties":{"query":{"type":"string","description":"Words to search for, as in python or sql"}}}`, policy.Read, ""},
		{"search_docs", "Search the documentation of SQL", `{"properties":{"query":{"type":"string"}}}`, policy.Read, ""},
		{"get_result", "Get a result", `{"properties":{"name":{"type":"string","description":"Name of the SQL query"},"limit":{"type":"integer","description":"SQL query limit"}}}`, policy.Read, ""},
		{"get_template", "", `{"properties":{"language":{"type":"string","description":"Programming language: python, javascript"},"server":{"type":"string","description":"SQL server"}}}`, policy.Read, ""},
		{"list_functions", "", `{"properties":{"kind":{"enum":["a","b"],"description":"SQL function to list"}}}`, policy.Read, ""},
		{"datatable", "Work with tables", `{"properties":{"action":{"enum":["get","deleteRows"]}}}`, policy.Destructive, `one of its actions is "delete"`},
		{"get_table", "", `{"properties":{"operation":{"type":"string","enum":["read","insert"]}}}`, policy.Write, `one of its actions is "insert"`},
	} {
		in := InferHints(define(t, c.name, c.description, c.schema))
		found := c.reason == ""
		for _, part := range strings.Split(c.reason, "|") {
			found = found || strings.Contains(in.Reason, part)
		}
		if in.Operation != c.want || !found || in.Reason == "" {
			t.Errorf("%s (%s): %s because %s, want %s because … %s", c.name, c.description, in.Operation, in.Reason, c.want, c.reason)
		}
	}
}

// TestUnsure checks that an inference that is only the cautious default is marked as unsure, unlike one with
// evidence.
func TestUnsure(t *testing.T) {
	for name, want := range map[string]bool{
		"get_user|Get a user": false, "create_user|": false, "weather|": true, "users|Creates a user": false, "delete_x|": false,
		"get_deleted|": true, "get_user|Gets a user and deletes its session": false, "get_x|Gets and creates": true, "run_job|": false, "note|": true, "generate_chart|Generate a chart": true, "generate_x|Generates x and deletes y": false, "note|Take a note": false, "update|": false,
	} {
		tool, description, _ := strings.Cut(name, "|")
		if in := InferHints(define(t, tool, description, "")); in.Unsure != want {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

func TestTitleHelps(t *testing.T) {
	d := define(t, "x42", "", "")
	d.Title = "Delete a user"
	if in := InferHints(d); in.Operation != policy.Destructive {
		t.Errorf("got %+v", in)
	}
	d = define(t, "x42_deleted", "", "")
	d.Title = "Get a user"
	if in := InferHints(d); in.Operation != policy.Write {
		t.Errorf("got %+v", in)
	}
	d = define(t, "get_user", "", "")
	d.Title = "Delete a user"
	if in := InferHints(d); in.Operation == policy.Read {
		t.Errorf("got %+v", in)
	}
}

// TestNoDeletionIsRead checks that a name that contains a word for deletion, at any position, is never inferred as a
// read.
func TestNoDeletionIsRead(t *testing.T) {
	names := []string{"get_user", "list", "users.search", "fetchAllPages", "read-file", "describe_table", "check_status", ""}
	spellings := func(a, b string) []string {
		return []string{a + "_" + b, b + "_" + a, a + "-" + b, a + "." + b, a + strings.ToUpper(b[:1]) + b[1:], b + "2_" + a, a + "/" + thirdPersonOf(b), gerundOf(b) + "_" + a, a + "_" + lexicon().participleOf(b), strings.ToUpper(b + "_" + a)}
	}
	for _, verb := range sectionfile.Parse(wordsText).SectionByHead("destroys").Words() {
		for _, n := range names {
			for _, name := range spellings(n, verb) {
				if in := InferHints(define(t, name, "Get all users", "")); in.Operation == policy.Read {
					t.Errorf("%s is inferred as a read: %s", name, in.Reason)
				}
			}
		}
	}
	// Joined to other words in lower case.
	for _, verb := range strings.Fields(`delete deletes deleted deleting deletion remove removal purge destroy destruct truncate erase
		uninstall revoke revocation unlink terminate termination drop kill wipe overwrite evict deallocate eliminate unpublish`) {
		for _, name := range []string{"get_bulk" + verb, "list" + verb + "_all", "force" + verb + "_get", "search_un" + verb} {
			if in := InferHints(define(t, name, "Get all users", "")); in.Operation == policy.Read {
				t.Errorf("%s is inferred as a read: %s", name, in.Reason)
			}
		}
	}
}

func FuzzInfer(f *testing.F) {
	f.Add("get_user", "Get a user", "t", []byte(`{"properties":{"id":{"type":"string"}}}`))
	f.Add("users.delete", "删除", "", []byte(`{"properties":{"action":{"enum":["a",1,null]}},"anyOf":[{},1]}`))
	f.Add("\xff\u0301İ", "\xe2\x80", "HTTPServerURLs", []byte(`{"properties":[]}`))
	f.Fuzz(func(t *testing.T, name, description, title string, schema []byte) {
		if !json.Valid(schema) {
			return
		}
		d := tool.Definition{ID: tool.ID{Server: "s", Tool: name}, Description: description, Title: title, InputSchema: schema}
		in := InferHints(d)
		if in != InferHints(d) || in.Reason == "" || in.Operation == policy.NoOperation {
			t.Fatalf("%+v", in)
		}
		for _, word := range splitIdentifier(name, nil) {
			if lexicon().words[word].role == destroys && in.Operation == policy.Read {
				t.Errorf("%q is inferred as a read", name)
			}
		}
	})
}

func BenchmarkInfer(b *testing.B) {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "real-servers", "*.tools.json"))
	var tools []tool.Definition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			b.Fatal(err)
		}
		for _, raw := range list.Tools {
			if d, err := tool.ParseDefinition("s", raw); err == nil {
				tools = append(tools, d)
			}
		}
	}
	if len(tools) == 0 {
		b.Skip("the lists of real servers are missing, set MCPPROXY_SHARED")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		InferHints(tools[i%len(tools)])
	}
}
