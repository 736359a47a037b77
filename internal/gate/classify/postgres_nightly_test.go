//go:build nightly

package classify

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	pgquery "github.com/wasilibs/go-pgquery"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

var update = flag.Bool("update", false, "record the verdicts of PostgreSQL's parser")

var volatile = sync.OnceValue(func() map[string]bool {
	text, err := os.ReadFile("testdata/pg-volatile.txt")
	if err != nil {
		panic(err)
	}
	return sectionfile.Parse(string(text)).SectionByHead("volatile").WordSet()
})

// oracle returns the operation that PostgreSQL's own parser finds in a text. ok is false if the parser does not
// accept the text.
func oracle(text string) (o policy.Operation, statements int, ok bool) {
	tree, err := pgquery.ParseToJSON(text)
	if err != nil {
		return 0, 0, false
	}
	var parsed struct {
		Stmts []struct{ Stmt map[string]any }
	}
	if err := json.Unmarshal([]byte(tree), &parsed); err != nil {
		return 0, 0, false
	}
	o = policy.Read
	for _, s := range parsed.Stmts {
		for kind, node := range s.Stmt {
			o = max(o, ofStatement(kind, node.(map[string]any)))
		}
	}
	return o, len(parsed.Stmts), true
}

func ofStatement(kind string, node map[string]any) policy.Operation {
	switch kind {
	case "SelectStmt", "VariableShowStmt":
		return max(policy.Read, effects(kind, node))
	case "ExplainStmt":
		options, _ := json.Marshal(node["options"])
		if !strings.Contains(string(options), `"analyze"`) {
			return policy.Read
		}
		for kind, inner := range node["query"].(map[string]any) {
			return ofStatement(kind, inner.(map[string]any))
		}
	}
	return max(policy.Write, effects(kind, node))
}

// effects searches a tree for nodes that change something.
func effects(kind string, node any) (o policy.Operation) {
	switch n := node.(type) {
	case []any:
		for _, x := range n {
			o = max(o, effects("", x))
		}
	case map[string]any:
		subtype, _ := n["subtype"].(string)
		switch kind {
		case "DropStmt", "TruncateStmt", "DeleteStmt", "DropRoleStmt", "DropdbStmt", "DropOwnedStmt", "DropTableSpaceStmt", "DropUserMappingStmt", "DropSubscriptionStmt":
			return policy.Destructive
		case "AlterTableCmd":
			// Four commands only remove a property without data, such as NO INHERIT.
			marks := []string{"AT_DropInherit", "AT_DropOids", "AT_DropCluster", "AT_DropOf"}
			if strings.HasPrefix(subtype, "AT_Drop") && !slices.Contains(marks, subtype) {
				return policy.Destructive
			}
		case "MergeWhenClause":
			if n["commandType"] == "CMD_DELETE" {
				return policy.Destructive
			}
		case "GrantStmt", "GrantRoleStmt":
			if n["is_grant"] != true {
				return policy.Destructive
			}
		case "InsertStmt", "UpdateStmt", "MergeStmt", "intoClause", "LockingClause":
			o = policy.Write
		case "FuncCall":
			names, _ := n["funcname"].([]any)
			last, _ := json.Marshal(names[len(names)-1])
			var name struct{ String struct{ Sval string } }
			if json.Unmarshal(last, &name) == nil && volatile()[name.String.Sval] {
				o = policy.Write
			}
		}
		for kind, x := range n {
			o = max(o, effects(kind, x))
		}
	}
	return o
}

// TestOracle checks that the oracle detects the effects that it must detect.
func TestOracle(t *testing.T) {
	for text, want := range map[string]policy.Operation{
		"select 1": policy.Read, "select * from t for update": policy.Write, "select 1 into t": policy.Write, "drop table t": policy.Destructive,
		"with x as (delete from t returning 1) select * from x": policy.Destructive, "select pg_catalog.nextval('s')": policy.Write, "explain delete from t": policy.Read,
		"explain (analyze) delete from t": policy.Destructive, "alter table t drop column a": policy.Destructive, "alter table t add column a int": policy.Write, "revoke all on t from u": policy.Destructive,
	} {
		if o, _, ok := oracle(text); !ok || o != want {
			t.Errorf("%s: %s, want %s", text, o, want)
		}
	}
}

// TestRecordedVerdicts compares the recorded verdicts with the verdicts of the parser.
func TestRecordedVerdicts(t *testing.T) {
	var want strings.Builder
	for _, text := range slices.Sorted(slices.Values(recordedTexts(t))) {
		verdict := notPostgreSQL
		if o, _, ok := oracle(text); ok {
			verdict = o.String()
		}
		want.WriteString(verdict + "\t" + strconv.Quote(text) + "\n")
	}
	if *update {
		if err := os.WriteFile(verdictsFile, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(verdictsFile); err != nil || string(got) != want.String() {
		t.Errorf("%s differs from the verdicts of the parser (%v): run this test with -update", verdictsFile, err)
	}
}

// chunks splits a script approximately, at lines that end with a semicolon.
func chunks(text string) (all []string) {
	var chunk []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), `\`) {
			continue
		}
		chunk = append(chunk, line)
		if s := strings.TrimSpace(line); strings.HasSuffix(s, ";") {
			all, chunk = append(all, strings.Join(chunk, "")), nil
		}
	}
	return append(all, strings.Join(chunk, ""))
}

// TestPlainReadsOfPostgres checks that PostgreSQL's parser accepts the corpus of plain reads as reads.
func TestPlainReadsOfPostgres(t *testing.T) {
	for _, line := range corpus(t, "reads.txt").SectionByHead("postgresql").Lines {
		text := strings.ReplaceAll(line, `\n`, "\n")
		if want, _, ok := oracle(text); ok && want != policy.Read {
			t.Errorf("%s: the oracle returns %s", text, want)
		}
	}
}

// score counts the verdicts on a set compared with the oracle.
type score struct{ judged, reads, laxer, agreed, unparsed int }

func (s *score) add(t *testing.T, from, text string) {
	want, _, ok := oracle(text)
	if !ok {
		s.unparsed++
		return
	}
	s.judged++
	got := classifySQL(text)
	if want == policy.Read {
		s.reads++
		if got.Operation == policy.Read {
			s.agreed++
		} else if os.Getenv("MCPPROXY_LANES_SHOW") != "" {
			t.Logf("%s: %s (%s): %.200s", from, got.Operation, got.Word, strings.Join(strings.Fields(text), " "))
		}
	}
	if got.Operation < want {
		s.laxer++
		t.Errorf("%s: %s, the oracle returns %s: %.300s", from, got.Operation, want, text)
	}
}

func (s *score) report(t *testing.T, what string) {
	t.Logf("%s: %d texts compared with the oracle (%d not parsed), %d less dangerous; of %d reads, %d are classified as reads (%.1f %%)",
		what, s.judged, s.unparsed, s.laxer, s.reads, s.agreed, 100*float64(s.agreed)/float64(max(1, s.reads)))
	if s.judged == 0 {
		t.Error("no text was compared")
	}
}

func scripts(t *testing.T, dir string) {
	var s score
	for _, path := range files(t, dir, ".sql") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rest := ""
		for i, chunk := range chunks(string(text)) {
			if _, _, ok := oracle(rest + chunk); !ok && len(rest) < 10_000 {
				rest += chunk // incomplete, or not a statement
				if _, _, ok := oracle(chunk); ok {
					s.add(t, filepath.Base(path), chunk)
					rest = ""
				}
				continue
			}
			s.add(t, filepath.Base(path), rest+chunk)
			rest = ""
			if i%50 == 0 { // some of the statements that are on one line
				s.add(t, filepath.Base(path), strings.Join(chunks(string(text))[i:min(i+3, len(chunks(string(text))))], ""))
			}
		}
	}
	s.report(t, dir)
}

// TestRegressionOfPostgreSQL checks that the regression statements of PostgreSQL never get a less dangerous lane than
// its parser finds.
func TestRegressionOfPostgreSQL(t *testing.T) { scripts(t, corpora(t, "pganalyze+libpg_query")) }

// TestThirdPartyStatements checks that statements for several databases, from third-party collections, never get a
// less dangerous lane than PostgreSQL's parser finds, as far as it accepts them.
func TestThirdPartyStatements(t *testing.T) {
	scripts(t, corpora(t, "antlr+grammars-v4"))
	scripts(t, corpora(t, "bytebase+mysql-parser"))
}

var tclBlock = regexp.MustCompile(`(?s)do_execsql_test[^{]*\{(.*?)\n\}`)

// TestRegressionOfSQLite checks that the statements of SQLite's tests never get a less dangerous lane than
// PostgreSQL's parser finds.
func TestRegressionOfSQLite(t *testing.T) {
	var s score
	for _, path := range files(t, corpora(t, "tursodatabase+limbo"), ".test") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range tclBlock.FindAllStringSubmatch(string(text), -1) {
			s.add(t, filepath.Base(path), block[1])
			for _, one := range chunks(block[1]) {
				s.add(t, filepath.Base(path), one)
			}
		}
	}
	s.report(t, "limbo")
}
