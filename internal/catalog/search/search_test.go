package search

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/volume"
)

func definition(server, name, description, schema string) tool.Definition {
	return tool.Definition{ID: tool.ID{Server: server, Tool: name}, Description: description, InputSchema: json.RawMessage(schema)}
}

var shelf = []tool.Definition{
	definition("github", "create_issue", "Open a new issue in a repository", `{"type":"object","properties":{"title":{"type":"string","description":"Headline"},"labels":{"enum":["bug","regression"]}}}`),
	definition("github", "deleteRepository", "Delete a GitHub repository", `{"type":"object","properties":{"owner":{"type":"string"}}}`),
	definition("gitlab", "create_issue", "Open a ticket in a project", `{"$defs":{"a":{"description":"milestone to attach"}}}`),
	definition("fs", "read_text_file", "Read the complete contents of a file from disk", ""),
	definition("fs", "list-directory", "Get a listing of all files and directories", "null"),
	definition("db", "query", "Run a read-only SQL query against PostgreSQL", `{"properties":`),
	definition("cal", "予定を作成", "カレンダーに会議の予定を作成する", ""),
	definition("misc", "what_is", "", ""),
	definition("aws", "S3GetObject", "Fetches an object from a bucket; base64 encoded", ""),
	definition("café", "naïve_menü", "Crème brûlée", ""),
}

func TestSearchFinds(t *testing.T) {
	ix := build(shelf)
	tests := []struct{ name, query, first string }{
		{"words of the description", "open a new issue", "github:create_issue"},
		{"another form of the word", "reading files", "fs:read_text_file"},
		{"camel case", "delete repository", "github:deleteRepository"},
		{"kebab case", "list directory", "fs:list-directory"},
		{"acronym and digit", "s3 object", "aws:S3GetObject"},
		{"letters of a word with digits", "base encoded", "aws:S3GetObject"},
		{"joined identifier", "deleterepository", "github:deleteRepository"},
		{"allowed value of a parameter", "regression", "github:create_issue"},
		{"text inside $defs", "milestone", "gitlab:create_issue"},
		{"parameter name", "owner", "github:deleteRepository"},
		{"server name", "gitlab issue", "gitlab:create_issue"},
		{"the exact name", "query", "db:query"},
		{"the exact id", "gitlab:create_issue", "gitlab:create_issue"},
		{"the exact id in other case", " GitLab:Create_Issue ", "gitlab:create_issue"},
		{"the name on the direct surface", "gitlab__create_issue", "gitlab:create_issue"},
		{"one letter wrong", "repositry", "github:deleteRepository"},
		{"two letters exchanged", "isuse ticket", "gitlab:create_issue"},
		{"a word of the same meaning", "erase github repository", "github:deleteRepository"},
		{"a meaning that no tool's words have", "bulletin folder", "fs:list-directory"},
		{"two words for one", "post gre sql", "db:query"},
		{"one word for two", "createissue gitlab", "gitlab:create_issue"},
		{"a second wish", "Which files are there? Then delete the github repository", "github:deleteRepository"},
		{"Japanese", "会議を作成したい", "cal:予定を作成"},
		{"full-width letters", "ｒｅｐｏｓｉｔｏｒｙ delete", "github:deleteRepository"},
		{"diacritics left out", "creme brulee", "café:naïve_menü"},
		{"diacritics", "naïve", "café:naïve_menü"},
		{"hidden characters in a word", "dir\u200bect\u00adory listing", "fs:list-directory"},
		{"SQL", "SELECT * FROM users; DROP TABLE users; -- sql", "db:query"},
		{"stop words alone", "what is", "misc:what_is"},
		{"emoji", "🔥🔥 bucket 🔥", "aws:S3GetObject"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hits, total := ix.Search(nil, tt.query, 3, nil)
			if got := ix.names(hits); len(got) == 0 || got[0] != tt.first {
				t.Fatalf("Search(%q) = %v, want %s first", tt.query, got, tt.first)
			}
			if total < len(hits) {
				t.Errorf("total = %d with %d hits", total, len(hits))
			}
		})
	}
}

// TestServerNameFindsItsTools checks that a query that is the name of a server, in any spelling, finds its tools before
// all others, even tools that contain none of the words.
func TestServerNameFindsItsTools(t *testing.T) {
	ix := build(append([]tool.Definition{
		definition("what-is", "a", "Explains a word", ""), definition("what-is", "b", "", ""), definition("----", "c", "", ""),
		definition("Wiki", "read_page", "Reads a page", ""), definition("Wiki", "pages", "Lists pages", ""),
		definition("notes", "find_in_wiki", "Finds a wiki page in the wiki of all wikis", `{"properties":{"wiki":{"description":"the wiki"}}}`),
	}, shelf...))
	for query, want := range map[string][]string{
		"what-is": {"misc:what_is", "what-is:a", "what-is:b"}, "What Is": {"misc:what_is", "what-is:a", "what-is:b"}, "----": {"----:c"},
		" wiki\n": {"Wiki:pages", "Wiki:read_page"}, "WIKI": {"Wiki:pages", "Wiki:read_page"}, "fs": {"fs:list-directory", "fs:read_text_file"},
	} {
		hits, total := ix.Search(nil, query, len(want), nil)
		got := ix.names(hits)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || total < len(want) {
			t.Errorf("%q of %d: -want +got:\n%s", query, total, diff)
		}
		for _, h := range hits {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("%q: score %v", query, h.Score)
			}
		}
	}
	hits, _ := ix.Search(nil, "wiki", 10, nil)
	d := definition("Wiki", "pages", "Lists pages", "")
	if why := ix.MatchReasons(nil, "wiki", hits[0].Doc, &d); len(why) == 0 || why[0].How != ByName {
		t.Errorf("reasons: %+v", why)
	}
	hidden := NewIndex(partsOf([]tool.Definition{definition("a", "x", "", ""), definition("a", "y", "", "")})).View(func(doc int) bool { return doc == 0 })
	if _, total := hidden.Search(nil, "a", 10, nil); total != 1 {
		t.Errorf("got %d tools, want only the shown one", total)
	}
}

// TestDeprecatedToolsComeAfterTheirSuccessors checks that a deprecated tool comes after its named successor, however
// well it matches. Only its id finds it first.
func TestDeprecatedToolsComeAfterTheirSuccessors(t *testing.T) {
	tools := append([]tool.Definition{
		definition("files", "read_file", "Read a file: the file to read is read from disk. DEPRECATED: Use read_text_file, or stream.file.", ""),
		definition("files", "read_text_file", "Gives text", ""),
		definition("files", "stream.file", "Gives a stream", ""),
		definition("files", "a", "DEPRECATED. Use b", ""), definition("files", "b", "DEPRECATED. Use a, or read_file and c.", ""),
		definition("other", "open_page", "Deprecated: opens a page of paper", ""),
		definition("other", "page", "Opens it", ""),
	}, shelf...)
	ix := build(tools)
	for query, want := range map[string]string{
		"read a file": "read_text_file stream.file read_file", "read_file": "read_text_file stream.file read_file",
		"read file from disk": "read_text_file stream.file read_file", "files:read_file": "read_file", "a page of paper to open": "page open_page",
		"files": "read_text_file read_file",
	} {
		hits, _ := ix.Search(nil, query, 100, nil)
		at := -1
		for _, name := range strings.Fields(want) {
			next := slices.IndexFunc(hits, func(h Hit) bool { return ix.ix.toolID(uint32(h.Doc)).Tool == name })
			if next <= at || query == "files:read_file" && next != 0 {
				t.Errorf("%q finds %v, want %s", query, ix.names(hits), want)
				break
			}
			at = next
		}
	}
	// If no successor can be found, the deprecated tool is found like any other tool.
	hidden := NewIndex(partsOf(tools)).View(func(doc int) bool { return doc == 0 || doc > 2 })
	if hits, _ := hidden.Search(nil, "read_file", 1, nil); hidden.names(hits)[0] != "files:read_file" {
		t.Errorf("with its successors hidden: %v", hidden.names(hits))
	}
}

func TestMentions(t *testing.T) {
	for name, want := range map[string]bool{"github": true, "GitHub-prod": true, "my_issues": true, "gitlab": false, "for": false, "a": false} {
		if got := NewNameMatcher("open an issue for a repository on GitHub")(name); got != want {
			t.Errorf("match of %s: got %v", name, got)
		}
	}
}

func TestSearchFindsNothing(t *testing.T) {
	ix := build(shelf)
	for _, query := range []string{"", " ", "x", "🔥", "!?", "the and of", "zzzzqqqq", "\x00\xff\xfe", strings.Repeat("the ", 3000)} {
		if hits, total := ix.Search(nil, query, 10, nil); len(hits) != 0 || total != 0 {
			t.Errorf("Search(%.20q) = %v, %d; want nothing", query, ix.names(hits), total)
		}
	}
	if hits, total := NewIndex(nil).View(nil).Search(nil, "anything", 10, nil); len(hits) != 0 || total != 0 {
		t.Errorf("an empty index gave %v, %d", hits, total)
	}
}

func TestSearchFiltersBeforeTheLimit(t *testing.T) {
	ix := build(shelf)
	all, total := ix.Search(nil, "create an issue or read files", 100, nil)
	if total != len(all) || total < 4 {
		t.Fatalf("total = %d with %d hits", total, len(all))
	}
	first := all[0].Doc
	hits, kept := ix.Search(nil, "create an issue or read files", 2, func(doc int) bool { return doc != first })
	if kept != total-1 {
		t.Errorf("total = %d, want %d: keep rejects one match", kept, total-1)
	}
	if want := all[1:3]; !cmp.Equal(hits, want) {
		t.Errorf("hits = %v, want %v", hits, want)
	}
	if hits, kept := ix.Search(nil, "issue", 0, nil); len(hits) != 0 || kept == 0 {
		t.Errorf("n = 0 gave %v, %d; want no hits, but the total", hits, kept)
	}
}

func TestSearchScores(t *testing.T) {
	ix := build(shelf)
	for _, query := range []string{"create issue", "create_issue", "read a file. then delete the repository", "file"} {
		hits, _ := ix.Search(nil, query, 100, nil)
		for i, h := range hits {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("%q: score %v is not in (0, 1]", query, h.Score)
			}
			if i > 0 && h.Score > hits[i-1].Score {
				t.Errorf("%q: score %v after %v", query, h.Score, hits[i-1].Score)
			}
		}
	}
	if hits, _ := ix.Search(nil, "github:create_issue", 3, nil); hits[0].Score != 1 || hits[1].Score == 1 {
		t.Errorf("exact id and next match have scores %v and %v, want 1 and less", hits[0].Score, hits[1].Score)
	}
}

// TestSearchIgnoresInsertionOrder checks that the same definitions give the same result in whatever order they were
// added.
func TestSearchIgnoresInsertionOrder(t *testing.T) {
	volume.SkipUnderRace(t)
	defs := definitions(t, "ref065/tools.jsonl")
	queries := scaleQueries(t)
	queries = append(queries[:volume.FullOrQuick(len(queries), len(queries)/5)], "git_add", "creat entitys", "")
	want := answers(defs, queries)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		rng.Shuffle(len(defs), func(i, j int) { defs[i], defs[j] = defs[j], defs[i] })
		if diff := cmp.Diff(want, answers(defs, queries)); diff != "" {
			t.Fatalf("another order of documents gave other results:\n%s", diff)
		}
	}
}

type answer struct {
	IDs    []string
	Scores []float64
	Total  int
}

func answers(defs []tool.Definition, queries []string) (out []answer) {
	ix := build(defs)
	for _, q := range queries {
		out = append(out, answerTo(ix, q))
	}
	return out
}

func answerTo(ix *View, query string) answer {
	hits, total := ix.Search(nil, query, 10, nil)
	a := answer{IDs: ix.names(hits), Total: total}
	for _, h := range hits {
		a.Scores = append(a.Scores, h.Score)
	}
	return a
}

// TestHostile checks that hostile definitions and queries take a bounded time.
func TestHostile(t *testing.T) {
	long := strings.Repeat("lorem ipsum dolor ", 60_000)
	words := make([]string, 20_000)
	for i := range words {
		words[i] = "w" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
	}
	deep := strings.Repeat(`{"properties":{"a":`, 60) + "{}" + strings.Repeat("}}", 60)
	defs := append([]tool.Definition{
		definition("evil", "long", long, ""),
		definition("evil", "many", strings.Join(words, " "), ""),
		definition("evil", strings.Repeat("aB", 5000), "", deep),
		definition("evil", "run", strings.Repeat("x", 1<<20), ""),
		definition("evil", "invalid", "\xff\xfe\x00 broken utf", `{"properties":{"\ud800":{}}}`),
	}, shelf...)
	start := time.Now()
	ix := build(defs)
	for _, q := range []string{long, strings.Join(words, " "), strings.Repeat("a", 1<<20), strings.Repeat("aB", 5000), strings.Repeat("会議", 5000), strings.Repeat("repositry. ", 1000), strings.Repeat("\u200b", 10_000)} {
		ix.Search(nil, q, 10, nil)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("hostile definitions and queries took %v", took)
	}
	if hits, _ := ix.Search(nil, "create_issue", 2, nil); hits[0].Score != 1 {
		t.Error("hostile definitions hide an honest one")
	}
}

func TestSplitter(t *testing.T) {
	tests := []struct{ text, want string }{
		{"getUserByID", "get user by id getuserbyid"},
		{"HTTPServer2 parseURLs", "http server2 server httpserver2 parse url parseurls"},
		{"snake_case-kebab.dot/slash", "snake case kebab dot slash"},
		{"OAuth2 base64 s3 v2 10GB", "o auth2 auth oauth2 base64 base s3 v2 10 gb 10gb"},
		{"user's don't I'm O'Reilly", "user don i o reilly"},
		{"GetÜberÄrger", "get uber arger getuberarger"},
		{"東京の天気 tokyo天気", "東京 京の の天 天気 tokyo 天気"},
		{"日", "日"},
		{"한국어 검색", "한국 국어 검색"},
		{"Привет Мир", "привет мир"},
		{"a\u0301b", "ab"},
		{"", ""},
	}
	for _, tt := range tests {
		var got []string
		sp := splitter{emit: func(w []byte) { got = append(got, string(w)) }}
		sp.splitText(tt.text)
		if joined := strings.Join(got, " "); joined != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, joined, tt.want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"read a file", "Ünïcödé 会議", "github:create_issue", "a. b. c. d. e. f. g. h.", "\xff", "getHTTP2Server"} {
		f.Add(seed, seed)
	}
	base := partsOf(shelf)
	f.Fuzz(func(t *testing.T, query, text string) {
		d := NewServerIndexPart("fuzz", []*tool.Definition{{ID: tool.ID{Server: "fuzz", Tool: text}, Description: text, InputSchema: json.RawMessage(text)}})
		ix := NewIndex(append(base[:len(base):len(base)], d)).View(nil)
		hits, total := ix.Search(nil, query, 5, nil)
		if len(hits) > total || len(hits) > 5 {
			t.Fatalf("got %d hits of %d", len(hits), total)
		}
		for _, h := range hits {
			if h.Score <= 0 || h.Score > 1 || h.Doc < 0 || h.Doc > len(shelf) {
				t.Fatalf("hit %+v", h)
			}
		}
		NearestNames(query, []string{text, "create_issue"}, 3)
	})
}
