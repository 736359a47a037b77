package classify

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
	"mcpproxy/internal/testutil/volume"
)

// corpus reads a file of testdata with one statement in each line.
func corpus(t testing.TB, name string) sectionfile.Sections {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return sectionfile.Parse(string(text))
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\u00a0`, "\u00a0", `\u2003`, "\u2003", `\ufeff`, "\ufeff", `\u0131`, "\u0131", `\u017f`, "\u017f", `\u00e9`, "\u00e9")

// TestPlainReads classifies ordinary reads of ten databases. At least 95 % must be reads.
func TestPlainReads(t *testing.T) {
	all, read := 0, 0
	for _, database := range corpus(t, "reads.txt") {
		its := 0
		for _, line := range database.Lines {
			text := strings.ReplaceAll(line, `\n`, "\n")
			if v := classifySQL(text); v.Operation == policy.Read {
				its++
			} else {
				t.Logf("%s: %s (%s): %s", database.Head, v.Operation, v.Word, text)
			}
		}
		t.Logf("%s: %d of %d are classified as reads", database.Head, its, len(database.Lines))
		all, read = all+len(database.Lines), read+its
	}
	t.Logf("%d of %d (%.1f %%)", read, all, 100*float64(read)/float64(all))
	if all < 400 || read*100 < all*95 {
		t.Errorf("only %d of %d are classified as reads", read, all)
	}
}

// TestEffects classifies texts that write, destroy, run something or cannot be parsed. None may get a less dangerous
// lane, in any spelling.
func TestEffects(t *testing.T) {
	file, n := corpus(t, "effects.txt"), 0
	for head, want := range map[string]policy.Operation{"write": policy.Write, "destructive": policy.Destructive} {
		for _, line := range file.SectionByHead(head).Lines {
			text := unescape.Replace(line)
			for _, spelled := range spellings(text) {
				for _, place := range []string{"$", " \t\n$\n", "$;", ";$", "/* a comment */ $", "-- a comment\n$", "$ -- a comment", "SELECT 1; $", "SELECT ';'; $; SELECT 1"} {
					n++
					whole := strings.Replace(place, "$", spelled, 1)
					if v := classifySQL(whole); v.Operation < want {
						t.Errorf("%q: %s (%s), want %s", whole, v.Operation, v.Word, want)
					}
				}
			}
		}
	}
	t.Logf("%d texts", n)
}

// spellings returns a statement with its words in other spellings.
func spellings(text string) []string {
	all := []string{text, strings.ToLower(text)}
	if strings.ContainsAny(text, "'\"`[$\\/-\n.") {
		return all // spaces are significant in this text
	}
	for _, blank := range []string{"/**/", "\t", "\r\n", " /* x */ ", "\f", "\v", " -- x\n"} {
		all = append(all, strings.ReplaceAll(text, " ", blank))
	}
	return append(all, strings.ToUpper(text), alternate(text), strings.ReplaceAll(text, " ", "  "))
}

func alternate(s string) string {
	var out strings.Builder
	for i, r := range s {
		if i%2 == 0 {
			out.WriteString(strings.ToUpper(string(r)))
		} else {
			out.WriteString(strings.ToLower(string(r)))
		}
	}
	return out.String()
}

// placesOfCalls are statements with $ at a position where an expression or a table is allowed.
var placesOfCalls = []string{
	"SELECT $", "SELECT a, $ FROM t", "SELECT * FROM $", "SELECT * FROM $ AS x", "SELECT * FROM t, $ x", "SELECT * FROM t WHERE a = $", "SELECT * FROM t WHERE a IN (1, $)", "SELECT (SELECT $)",
	"SELECT * FROM (SELECT $ AS a) x", "WITH x AS (SELECT $) SELECT * FROM x", "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT $ FROM x) SELECT * FROM x", "SELECT 1 UNION ALL SELECT $", "SELECT 1 WHERE EXISTS (SELECT $)",
	"SELECT * FROM t JOIN LATERAL $ x ON true", "SELECT * FROM t CROSS APPLY $", "SELECT CASE WHEN a THEN $ ELSE 1 END FROM t", "SELECT a FROM t ORDER BY $", "SELECT a FROM t LIMIT $", "SELECT a FROM t GROUP BY $", "SELECT a FROM t GROUP BY a HAVING $ > 1",
	"SELECT count(*) FILTER (WHERE $) FROM t", "SELECT sum(a) OVER (ORDER BY $) FROM t", "SELECT CAST($ AS varchar(10))", "SELECT coalesce($, 1)", "SELECT [$]", "SELECT ARRAY[$]", "SELECT ($)", "SELECT a+$", "SELECT 1,$,2", "VALUES ($)", "VALUES (1, $)",
	"TABLE($)", "SELECT * FROM TABLE($)", "SELECT * FROM ROWS FROM ($) AS x", "EXPLAIN SELECT $", "EXPLAIN ANALYZE SELECT $", "EXPLAIN (ANALYZE, BUFFERS) SELECT $", "(SELECT $)", "((SELECT $) UNION (SELECT 1))", "SELECT 'it''s', $, 'x'", "SELECT 'it\\'s', $, 'x'", "SELECT 'a\\\\', $", "SELECT \"a\", $",
	"SELECT `a`, $", "SELECT $$a$$, $", "SELECT E'\\'', $", "SELECT 1 -- x\n, $", "SELECT 1 # x\n, $", "SELECT 1 /* x */, $", "SELECT /* x /* y */ */ $", "FROM t SELECT $", "SELECT * FROM a JOIN b ON a.x = $", "SELECT a AS b, $ AS c FROM t", "SELECT DISTINCT ON ($) a FROM t", "SELECT TOP ($) a FROM t",
	"SELECT {fn $}", "SELECT {'a': $}", "SELECT 1 WHERE 1 BETWEEN 0 AND $", "SHOW TABLES WHERE $", "DESCRIBE SELECT $", "SELECT * FROM t PIVOT ($ FOR a IN ('x'))", "SELECT x -> $ FROM t", "SELECT transform(a, x -> $) FROM t", "SELECT t.*, $ FROM t", "SELECT .5,$", "SELECT 1e5,$", "SELECT 0x1,$",
}

// names returns a call with the name before the parenthesis in other spellings.
func names(call string) []string {
	name, rest, _ := strings.Cut(call, "(")
	rest = "(" + rest
	all := []string{call, strings.ToUpper(name) + rest, alternate(name) + rest, name + " " + rest, name + "/**/" + rest, name + "\n" + rest, name + " -- x\n" + rest, "/*!50000 " + name + "*/" + rest, "/*!" + call + "*/", "/*M!100100 " + name + "*/" + rest}
	if strings.ContainsAny(name, ".$") {
		return all
	}
	escaped, marked := "", ""
	for _, c := range name {
		escaped, marked = escaped+fmt.Sprintf(`\%04x`, c), marked+fmt.Sprintf("!%04x", c)
	}
	return append(all, `"`+name+`"`+rest, `"`+name+`" `+rest, "["+name+"]"+rest, "`"+name+"`"+rest, "pg_catalog."+name+rest, "main."+name+rest, "a.b."+name+rest, `pg_catalog."`+name+`"`+rest,
		`U&"`+escaped+`"`+rest, `U&"`+marked+`" UESCAPE '!' `+rest, `u&"`+marked+`"uescape'!'`+rest, `U&"`+name[:1]+escaped[5:]+`"`+rest, `pg_catalog . U&"`+marked+`"/**/UESCAPE/**/'!'`+rest)
}

// TestCallsWithEffects checks that no call of a function with effects is classified as a read, in any position and
// spelling.
func TestCallsWithEffects(t *testing.T) {
	calls := corpus(t, "effects.txt").SectionByHead("calls").Lines
	n, rnd := 0, rand.New(rand.NewPCG(29, 1))
	some := volume.FullOrQuick(1, 4) // one of this many is tested
	for _, call := range calls {
		for _, name := range names(call) {
			for _, place := range placesOfCalls {
				if some > 1 && rnd.IntN(some) > 0 {
					continue
				}
				n++
				i := strings.LastIndex(place, "$")
				whole := place[:i] + name + place[i+1:]
				if v := classifySQL(whole); v.Operation < policy.Write {
					t.Errorf("%q: %s", whole, v.Operation)
				}
			}
		}
	}
	t.Logf("%d texts of %d calls", n, len(calls))
}
