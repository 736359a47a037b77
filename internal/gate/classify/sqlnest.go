package classify

import (
	"strings"

	"mcpproxy/internal/gate/policy"
)

// nestTracker tracks the clause and nesting of the tokens of a statement.
type nestTracker struct {
	sqlStatement
	deep int
	// One bit for each open parenthesis, the lowest bit for the innermost one. tables: it is in a table list. query:
	// it contains a query.
	tables, query uint64
}

// trackToken handles a parenthesis or a word that starts a clause.
func (n *nestTracker) trackToken(i int) {
	switch n.tokens[i].kind {
	case '(':
		among := uint64(0)
		if n.tables&1 != 0 && n.isTablePosition(i) {
			among = 1
		}
		n.deep++
		n.tables, n.query = n.tables<<1|among, n.query<<1
	case ')':
		n.deep--
		n.tables, n.query = n.tables>>1, n.query>>1
	default:
		if n.tokenKind(i-1) != '.' {
			n.trackClause(i)
		}
	}
}

// trackClause handles a word that starts a clause.
func (n *nestTracker) trackClause(i int) {
	switch {
	case n.isWordAt(i, "join"), n.isWordAt(i, "table"), n.isWordAt(i, "summarize"):
		n.tables |= 1
	case n.isWordAt(i, "with"): // WITH a AS, or WITH ORDINALITY
		n.query |= 1
	case !n.isWordAt(i, "from"):
		n.tables &^= 1
		n.query |= 1
	case n.isWordAt(i-1, "distinct") && (n.isWordAt(i-2, "is") || n.isWordAt(i-2, "not")): // IS DISTINCT FROM
	case n.deep == 0, n.query&1 != 0, n.tokenKind(i-1) == '(': // not EXTRACT(YEAR FROM x)
		n.tables |= 1
		n.query |= 1
	}
}

// isTablePosition reports whether a token can be a table name.
func (n *nestTracker) isTablePosition(i int) bool {
	k := n.tokenKind(i - 1)
	return k == ',' || k == '(' || k == aWord && n.hasClass(i-1, sqlClause) || n.isWordAt(i-1, "lateral")
}

// needsEffectCheck is a fast check of whether doesMoreThanRead can be true for a token.
func (n *nestTracker) needsEffectCheck(i int) bool {
	switch t := &n.tokens[i]; t.kind {
	case aWord:
		if t.class != 0 {
			return t.class&sqlWord != 0
		}
		first := letters[n.text[t.start]]
		return first == 'p' || first == 'f' || first == 'z' || first == 'g' || n.tokenKind(i+1) == '.'
	case aString:
		return n.tables&1 != 0
	case aQuoted, '/':
		return true
	}
	return false
}

// doesMoreThanRead reports whether a token that is neither a verb nor a parenthesis may do more than read.
func (n *nestTracker) doesMoreThanRead(i int) bool {
	t := &n.tokens[i]
	switch t.kind {
	case aString:
		return n.tables&1 != 0 && n.isTablePosition(i) // DuckDB reads it as a file
	case aQuoted:
		name := n.tokenText(i)
		return n.tables&1 != 0 && (n.isTablePosition(i) && isFileName(name, true) || n.tokenKind(i-1) == '.' && n.isTablePosition(i-2) && isFileName(name, false)) ||
			nameReadsFileOrRunsCode(name, n.tokenKind(i+1) == '.') && n.words.lookUpQuoted(name) == 0
	case '/':
		return n.isAloneOnLine(i)
	}
	switch {
	case t.class == 0:
		return nameReadsFileOrRunsCode(n.tokenText(i), n.tokenKind(i+1) == '.') || n.isWordAt(i, "go") && n.isAloneOnLine(i)
	case n.tokenKind(i-1) == '.':
		return false
	case n.isWordAt(i, "using"): // uses a script in Hive and Spark
		k := n.tokenKind(i + 1)
		return k == aString || k == aQuoted || k == aWord && n.tokenKind(i+2) == aString && n.tokens[i+1].end+1 == n.tokens[i+2].start
	}
	return n.isWordAt(i, "settings") && n.tokenKind(i+1) == aWord && n.tokenKind(i+2) == '=' && !n.hasHarmlessSettings(i+1)
}

// newFinding returns the finding for a doubtful token.
func (n *nestTracker) newFinding(i int) sqlFinding {
	switch k := n.tokenKind(i); {
	case n.isAloneOnLine(i):
		return sqlFinding{verdict: verdict{Operation: policy.Write, Word: "several statements"}}
	case k == aString || k == aQuoted && isFileName(n.tokenText(i), true):
		return sqlFinding{verdict: verdict{Operation: policy.Write, Word: "a file"}}
	}
	return sqlFinding{verdict{Operation: policy.Write}, i, false}
}

// isAloneOnLine reports whether a token is alone on its line, like the terminators GO and / of SQL Server and
// Oracle clients.
func (n *nestTracker) isAloneOnLine(i int) bool {
	t := n.tokens[i]
	if t.kind != aWord && t.kind != '/' || t.kind == aWord && !n.isWordAt(i, "go") {
		return false
	}
	before, after := strings.TrimRight(n.text[:t.start], " \t"), strings.TrimLeft(n.text[t.end:], " \t\r")
	return strings.HasSuffix(before, "\n") && (after == "" || after[0] == '\n')
}

// hasHarmlessSettings reports whether the SETTINGS of a ClickHouse query only affect reading.
func (n *nestTracker) hasHarmlessSettings(i int) bool {
	for ; n.tokenKind(i) == aWord && n.tokenKind(i+1) == '='; i++ {
		name := strings.ToLower(n.tokenText(i))
		known := n.hasClass(i, sqlSetting)
		for _, begin := range sqlSettingKinds() {
			known = known || strings.HasPrefix(name, begin)
		}
		if !known {
			return false
		}
		for i += 2; n.tokenKind(i) != ',' && n.tokenKind(i) != 0; i++ {
			if n.tokenKind(i) == aWord && n.tokenKind(i+1) == '=' || n.tokenKind(i) == ')' {
				return n.tokenKind(i) == ')'
			}
		}
	}
	return true
}

// nameReadsFileOrRunsCode reports whether a name reads a file or runs a statement at any position: a virtual table of
// SQLite, a package of Oracle.
func nameReadsFileOrRunsCode(name string, parts bool) bool {
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

// isFileName reports whether a quoted name is a file or an address, as in DuckDB, Drill and Spark. Such a name
// contains a slash or, if it is a whole table name, an extension.
func isFileName(name string, alone bool) bool {
	if strings.ContainsAny(name, `/\\`) {
		return true
	}
	dot := strings.LastIndexByte(name, '.')
	return alone && dot >= 0 && sqlWords().lookUpQuoted(strings.ToLower(name[dot+1:]))&sqlFile != 0
}
