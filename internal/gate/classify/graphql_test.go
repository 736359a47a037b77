package classify

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
)

// TestGraphQL checks that a document is classified by its operation, also in JSON text.
func TestGraphQL(t *testing.T) {
	documents := map[string]string{
		"{ a { b } }": "read", "query Q($a: Int = 1) { a(b: $a) { c } }": "read", "subscription { a }": "read", "{ mutation }": "read", "query mutation { a }": "read",
		"{ a(b: \"mutation { deleteX }\") }": "read", "{ a(b: \"\"\"mutation { \\\"\"\" deleteX }\"\"\") }": "read", "\ufeff{ a }": "read", "{ a } # mutation { deleteX }": "read",
		"mutation { createX { id } }": "write mutation", "mutation M { a: createX { id deletedAt } }": "write mutation", "{ a } mutation { createX { id } }": "write mutation",
		"mutation { deleteX { id } }": "destructive mutation deleteX", "mutation { a: deleteX { id } }": "destructive mutation deleteX", "mutation { users { deleteUser(id: 1) { id } } }": "destructive mutation deleteUser",
		"mutation { ... { ... on M { users { removeUser { id } } } } }": "destructive mutation removeUser", "mutation { ...F } fragment F on M { removeUser { id } }": "destructive mutation removeUser",
		"fragment F on M { dropTable } mutation { ...F }": "destructive mutation dropTable", "# query\nmutation{createX}": "write mutation", "mutation @skip(if: true) { createX }": "write mutation",
		"": "write no document of GraphQL", "drop": "write no document of GraphQL", "{ a": "write no document of GraphQL", "{}": "write no document of GraphQL", "fragment F on M { a }": "write no document of GraphQL", "type A { b: Int }": "write no document of GraphQL",
		"{ a(b: \"x) }": "write no document of GraphQL", "{ a } }": "write no document of GraphQL", "Mutation { createX }": "write no document of GraphQL", "12": "write no document of GraphQL", "null": "write no document of GraphQL", "[]": "write no document of GraphQL",
		`{"operationName": "Q"}`: "write no document of GraphQL", `{"query": null}`: "write no document of GraphQL", `{"query": 1}`: "write no document of GraphQL", `{"query": "{ a }", "query": "mutation { b }"}`: "write no document of GraphQL",
		`{"query": "{ a }", "id": "stored"}`: "write id", `{"id": "stored"}`: "write id", `{"query": "{ a }", "extensions": {"persistedQuery": {"sha256Hash": "x"}}}`: "write extensions",
		`{"query": "{ a }", "mutation": "mutation { b }"}`: "write mutation", `{"query": "{ a }", "extensions": {}}`: "read", `{"Query": "mutation { a }"}`: "write mutation",
	}
	judged := func(text string) string {
		v := classifyGraphQL(text)
		return strings.TrimSpace(v.Operation.String() + " " + v.Word)
	}
	for document, want := range documents {
		if got := judged(document); got != want {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
		text := func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		request := text(map[string]any{"query": document, "variables": map[string]any{"query": "mutation { x }"}, "operationName": "Q"})
		escaped := strings.Replace(request, `"query":`, `"\u0071uery":`, 1)
		for _, form := range []string{request, " \n" + request, escaped, text(request), text(text(document)), text(document), "[" + request + "]", "[" + text("{ a }") + "," + request + "]", text("[" + request + "]")} {
			if got := judged(form); got != want {
				t.Errorf("%s: %s, want %s", form, got, want)
			}
		}
	}
	deep := `"{ a }"`
	for range 20 {
		b, _ := json.Marshal(deep)
		deep = string(b[:min(len(b), maxText)])
	}
	for _, text := range []string{deep, strings.Repeat("[", 60) + `"{ a }"` + strings.Repeat("]", 60), strings.Repeat("{ a ", 10_000), strings.Repeat("[", maxText)} {
		if v := classifyGraphQL(text); v.Operation != policy.Write {
			t.Errorf("%.60s: %+v", text, v)
		}
	}
}

// BenchmarkGraphQL classifies documents of 4 KB.
func BenchmarkGraphQL(b *testing.B) {
	query := "query Q { " + strings.Repeat("user(id: 1) { name email } ", 150) + "}"
	request, _ := json.Marshal(map[string]string{"query": query})
	for name, text := range map[string]string{"document": query, "request": string(request), "deep": strings.Repeat("{a", 1300) + strings.Repeat("}", 1300)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				classifyGraphQL(text)
			}
		})
	}
}
