package classify

import (
	"strings"

	"mcpproxy/internal/gate/policy"
)

// nest tracks the clause and nesting of the tokens of a statement.
type nest struct {
	statement
	deep int
	// A bit per innermost parenthesis, the last bit for the innermost: whether it is in a table list, and
	// whether it has a query.
	tables, query uint64
}

// step handles a parenthesis or a word that starts a clause.
func (n *nest) step(i int) {
	switch n.tokens[i].kind {
	case '(':
		among := uint64(0)
		if n.tables&1 != 0 && n.table(i) {
			among = 1
		}
		n.deep++
		n.tables, n.query = n.tables<<1|among, n.query<<1
	case ')':
		n.deep--
		n.tables, n.query = n.tables>>1, n.query>>1
	default:
		if n.kind(i-1) != '.' {
			n.clause(i)
		}
	}
}

// clause handles a word that starts a clause.
func (n *nest) clause(i int) {
	switch {
	case n.is(i, "join"), n.is(i, "table"), n.is(i, "summarize"):
		n.tables |= 1
	case n.is(i, "with"): // WITH a AS, or WITH ORDINALITY
		n.query |= 1
	case !n.is(i, "from"):
		n.tables &^= 1
		n.query |= 1
	case n.is(i-1, "distinct") && (n.is(i-2, "is") || n.is(i-2, "not")): // IS DISTINCT FROM
	case n.deep == 0, n.query&1 != 0, n.kind(i-1) == '(': // not EXTRACT(YEAR FROM x)
		n.tables |= 1
		n.query |= 1
	}
}

// table reports whether a token can be a table name.
func (n *nest) table(i int) bool {
	k := n.kind(i - 1)
	return k == ',' || k == '(' || k == aWord && n.has(i-1, sqlClause) || n.is(i-1, "lateral")
}

// doubtful is a fast check of whether doubt applies to a token.
func (n *nest) doubtful(i int) bool {
	switch t := &n.tokens[i]; t.kind {
	case aWord:
		if t.class != 0 {
			return t.class&sqlWord != 0
		}
		first := letters[n.text[t.start]]
		return first == 'p' || first == 'f' || first == 'z' || first == 'g' || n.kind(i+1) == '.'
	case aString:
		return n.tables&1 != 0
	case aQuoted, '/':
		return true
	}
	return false
}

// doubt reports whether a token that is no verb or parenthesis may do more than read.
func (n *nest) doubt(i int) bool {
	t := &n.tokens[i]
	switch t.kind {
	case aString:
		return n.tables&1 != 0 && n.table(i) // DuckDB reads it as a file
	case aQuoted:
		name := n.word(i)
		return n.tables&1 != 0 && (n.table(i) && isFile(name, true) || n.kind(i-1) == '.' && n.table(i-2) && isFile(name, false)) ||
			loads(name, n.kind(i+1) == '.') && n.words.inQuotes(name) == 0
	case '/':
		return n.onItsLine(i)
	}
	switch {
	case t.class == 0:
		return loads(n.word(i), n.kind(i+1) == '.') || n.is(i, "go") && n.onItsLine(i)
	case n.kind(i-1) == '.':
		return false
	case n.is(i, "using"): // of a script in Hive and Spark
		k := n.kind(i + 1)
		return k == aString || k == aQuoted || k == aWord && n.kind(i+2) == aString && n.tokens[i+1].end+1 == n.tokens[i+2].start
	}
	return n.is(i, "settings") && n.kind(i+1) == aWord && n.kind(i+2) == '=' && !n.harmless(i+1)
}

// finding returns the finding for a doubtful token.
func (n *nest) finding(i int) finding {
	switch k := n.kind(i); {
	case n.onItsLine(i):
		return finding{verdict: verdict{Operation: policy.Write, Word: "several statements"}}
	case k == aString || k == aQuoted && isFile(n.word(i), true):
		return finding{verdict: verdict{Operation: policy.Write, Word: "a file"}}
	}
	return finding{verdict{Operation: policy.Write}, i, false}
}

// onItsLine reports whether a token is alone on its line, like the terminators GO and / of SQL Server and
// Oracle clients.
func (n *nest) onItsLine(i int) bool {
	t := n.tokens[i]
	if t.kind != aWord && t.kind != '/' || t.kind == aWord && !n.is(i, "go") {
		return false
	}
	before, after := strings.TrimRight(n.text[:t.start], " \t"), strings.TrimLeft(n.text[t.end:], " \t\r")
	return strings.HasSuffix(before, "\n") && (after == "" || after[0] == '\n')
}

// harmless reports whether the SETTINGS of a ClickHouse query only affect reading.
func (n *nest) harmless(i int) bool {
	for ; n.kind(i) == aWord && n.kind(i+1) == '='; i++ {
		name := strings.ToLower(n.word(i))
		known := n.has(i, sqlSetting)
		for _, begin := range sqlSettingKinds() {
			known = known || strings.HasPrefix(name, begin)
		}
		if !known {
			return false
		}
		for i += 2; n.kind(i) != ',' && n.kind(i) != 0; i++ {
			if n.kind(i) == aWord && n.kind(i+1) == '=' || n.kind(i) == ')' {
				return n.kind(i) == ')'
			}
		}
	}
	return true
}

// loads reports whether a name reads a file or runs a statement at any position: a virtual table of
// SQLite, a package of Oracle.
func loads(name string, parts bool) bool {
	begins := func(s string) bool { return len(name) > len(s) && strings.EqualFold(name[:len(s)], s) }
	if name == "" {
		return false
	}
	switch name[0] | 0x20 {
	case 'p':
		return begins("pragma_")
	case 'f':
		return strings.EqualFold(name, "fsdir")
	case 'z':
		return strings.EqualFold(name, "zipfile")
	case 'd':
		return parts && begins("dbms_")
	case 'u':
		return parts && begins("utl_")
	case 'c', 'o', 'a', 'h':
		return parts && (begins("ctx_") || begins("owa_") || begins("apex_") || strings.EqualFold(name, "htp"))
	}
	return false
}

// isFile reports whether a quoted name is a file or an address, as in DuckDB, Drill and Spark: with a
// slash or, as a table name, an extension.
func isFile(name string, alone bool) bool {
	if strings.ContainsAny(name, `/\\`) {
		return true
	}
	dot := strings.LastIndexByte(name, '.')
	return alone && dot >= 0 && sqlWords().inQuotes(strings.ToLower(name[dot+1:]))&sqlFile != 0
}
