package search

import (
	"strings"
	"testing"

	"mcpproxy/internal/tool"
)

// What is asked in words that no tool has finds what lies near them, and what is meant comes
// before what shares as many words.
func TestLikeness(t *testing.T) {
	ix := build(append([]tool.Definition{
		definition("a", "get_exchange_rate", "Get the rate of one currency in another", ""),
		definition("a", "get_rate_limit", "Get the rate of requests that are left", ""),
		definition("b", "cosmosdb_query", "Ask it", ""),
		definition("b", "login", "Begin a session", ""),
		definition("b", "read_log", "Read a log", ""),
	}, shelf...))
	for query, want := range map[string]string{
		"how much is usd in jpy": "a:get_exchange_rate",
		"rate of usd and jpy":    "a:get_exchange_rate",
		"cosmos":                 "b:cosmosdb_query",
		"log into the account":   "b:login",
		"logging in":             "b:login",
	} {
		hits, _ := ix.Search(nil, query, 2, nil)
		if got := ix.names(hits); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s first", query, got, want)
		}
	}
}

// Stop words of another language are passed over in it, and in no other.
func TestForeignStops(t *testing.T) {
	ix := build(append([]tool.Definition{
		definition("speech", "say", "Speaks", `{"properties":{"language":{"enum":["de","es","la","en"]}}}`),
	}, shelf...))
	for query, found := range map[string]bool{
		"buscar el repositorio de la empresa": false, "quiero el libro de los amigos es para mi": false,
		"speak la": true, "say it in es": true, "de": true,
	} {
		hits, _ := ix.Search(nil, query, 5, nil)
		if got := strings.Contains(strings.Join(ix.names(hits), " "), "speech:say"); got != found {
			t.Errorf("%q finds the codes of a schema: %v", query, got)
		}
	}
}

func TestClauses(t *testing.T) {
	for text, want := range map[string]string{
		"read the file and send an email":                  "read the file|send an email",
		"create and update issues":                         "create and update issues",
		"read the file, convert it, then print":            "read the file|convert it|print",
		"package analysis, dependency scanning, list them": "package analysis|dependency scanning|list them",
		"stock analysis + historical data":                 "stock analysis|historical data",
		"In the morning, we like tea.":                     "In the morning, we like tea.",
	} {
		var got []string
		list := !strings.ContainsAny(text, ".?!")
		for rest := text; rest != ""; {
			var clause string
			clause, rest = cutClause(rest, list)
			got = append(got, clause)
		}
		if joined := strings.Join(got, "|"); joined != want {
			t.Errorf("%q is %q, want %q", text, joined, want)
		}
	}
}

func TestReadVectors(t *testing.T) {
	if _, err := ReadVectors("one two\nshort"); err == nil {
		t.Error("a table that is cut off is read")
	}
	if v := embedded(); len(v.stems) < 5000 {
		t.Errorf("%d vectors are embedded", len(v.stems))
	}
}

// Of tools that are alike, use says little about which is meant.
func TestHabitsAmongSiblings(t *testing.T) {
	var defs []tool.Definition
	for _, name := range []string{"create_issue", "delete_issue", "close_issue", "list_issues"} {
		defs = append(defs, definition("tracker", name, "", ""))
	}
	ix := build(append(defs, shelf...))
	h := Learn(uses("issue", "tracker", "create_issue", 20))
	got := ix.habits(h, "issue")
	for doc, part := range got {
		if id := ix.ix.id(doc); id.Tool != "create_issue" || part <= 0 || part > 0.5 {
			t.Errorf("%s gets %v of what use adds, want half at most", id, part)
		}
	}
	if len(got) != 1 {
		t.Errorf("use speaks for %d tools", len(got))
	}
}
