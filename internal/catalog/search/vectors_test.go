package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

// TestLikeness checks that a query with words that no tool contains finds tools with related words. The right tool
// comes before tools that share the same number of words with the query.
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

// TestNames checks that a tool whose name has the same meaning in other words comes before a tool whose name has
// another meaning.
func TestNames(t *testing.T) {
	text := "Looks at the currency of a shop and gives the result"
	ix := build([]tool.Definition{
		definition("a", "get_exchange_rate", text, ""),
		definition("b", "get_banana", text, ""),
		definition("c", "get_chair", text, ""),
	})
	q := ix.parseQuery("currency conversion")
	names := nameSimilarityScorer{view: ix, asked: q.asked}
	near := map[string]float32{}
	for doc := range uint32(3) {
		near[ix.ix.toolID(doc).Tool] = names.scoreName(doc)
	}
	if near["get_exchange_rate"] < 0.1 || near["get_exchange_rate"] < 2*near["get_banana"] || near["get_exchange_rate"] > 1 {
		t.Errorf("similarities of the names: %v", near)
	}
	hits, _ := ix.Search(nil, "currency conversion", 3, nil)
	if got := ix.names(hits); got[0] != "a:get_exchange_rate" {
		t.Errorf("got %v", got)
	}
	for _, of := range []string{"exchange rate", "rate exchange", "get exchange rates"} {
		q := ix.parseQuery(of)
		if got := (&nameSimilarityScorer{view: ix, asked: q.asked}).scoreName(0); got != 1 {
			t.Errorf("similarity of %q to the same name: got %v, want 1", of, got)
		}
	}
	if got := (&nameSimilarityScorer{view: ix}).scoreName(0); got != 0 {
		t.Errorf("similarity to an empty query: got %v, want 0", got)
	}
}

// TestOrderBehindTheBest checks that the matches after the reranked ones stay in order, and that no score is higher
// than the previous one.
func TestOrderBehindTheBest(t *testing.T) {
	var defs []tool.Definition
	for i := range 3 * rerankSize {
		name := fmt.Sprintf("tool_%c%c", 'a'+i%26, 'a'+i/26)
		switch {
		case i%7 == 0:
			name = "issue_" + name
		case i%11 == 0:
			name = "ticket_" + name
		}
		d := definition(fmt.Sprint("s", i%9), name, strings.Repeat("A word. ", i%5)+"About an issue", "")
		if i%5 == 0 {
			d.Description = "Deprecated: use issue_tool_aa. An issue"
		}
		defs = append(defs, d)
	}
	ix := build(defs)
	for _, query := range []string{"issue", "an issue of a tool", "tickets"} {
		all, total := ix.Search(nil, query, len(defs), nil)
		if len(all) != total || total < 2*rerankSize && query != "tickets" {
			t.Errorf("%q: got %d of %d", query, len(all), total)
		}
		for i := 1; i < len(all); i++ {
			if all[i].Score > all[i-1].Score {
				t.Errorf("%q: score %d is %v, the previous one is %v", query, i, all[i].Score, all[i-1].Score)
			}
		}
		for _, n := range []int{1, rerankSize - 1, rerankSize, rerankSize + 1, 2 * rerankSize} {
			some, _ := ix.Search(nil, query, n, nil)
			if !slices.Equal(some, all[:min(n, len(all))]) {
				t.Errorf("%q: the first %d differ with that limit", query, n)
			}
		}
	}
}

// TestForeignStopWords checks that stop words of another language are skipped only in queries of that language.
func TestForeignStopWords(t *testing.T) {
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
			t.Errorf("words of %q: got %q, want %q", text, joined, want)
		}
	}
}

func TestReadVectors(t *testing.T) {
	if _, err := parseVectors("one two\nshort"); err == nil {
		t.Error("parseVectors accepts a truncated table")
	}
	if v := embeddedVectors(); len(v.stems) < 5000 {
		t.Errorf("got %d embedded vectors", len(v.stems))
	}
}

// TestHabitsAmongSiblings checks that, among similar tools, earlier use adds at most half of the bonus.
func TestHabitsAmongSiblings(t *testing.T) {
	var defs []tool.Definition
	for _, name := range []string{"create_issue", "delete_issue", "close_issue", "list_issues"} {
		defs = append(defs, definition("tracker", name, "", ""))
	}
	ix := build(append(defs, shelf...))
	h := LearnHabits(uses("issue", "tracker", "create_issue", 20))
	got := ix.habitScores(h, "issue")
	for doc, part := range got {
		if id := ix.ix.toolID(doc); id.Tool != "create_issue" || part <= 0 || part > 0.5 {
			t.Errorf("%s gets a share of %v of the bonus, want at most 0.5", id, part)
		}
	}
	if len(got) != 1 {
		t.Errorf("got scores for %d tools, want 1", len(got))
	}
}

// TestDot checks that both implementations of dot return the same sums, also for the extreme values of a component.
func TestDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 1000 {
		var a, b unitVector
		for d := range a {
			a[d], b[d] = int8(rng.IntN(256)), int8(rng.IntN(256))
			if i < 4 { // extreme values only: -128 or 127
				a[d], b[d] = int8(127+i%2), int8(127+i/2)
			}
		}
		if got, want := dot(&a, &b), dotGeneric(&a, &b); got != want {
			t.Fatalf("%d, want %d: %v %v", got, want, a, b)
		}
	}
}

func BenchmarkDot(b *testing.B) {
	v := embeddedVectors()
	for name, by := range map[string]func(a, b *unitVector) int32{"used": dot, "in Go": dotGeneric} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				by(v.rowVector(1), v.rowVector(2))
			}
		})
	}
}
