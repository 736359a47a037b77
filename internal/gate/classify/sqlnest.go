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
			return t.class&(sqlWord|sqlClient) != 0 || t.class&sqlFile != 0 && n.tokenKind(i-1) == '.'
		}
		first := letters[n.text[t.start]]
		return first == 'p' || first == 'f' || first == 'z' || first == 'g' || first == '@' || n.tokenKind(i+1) == '.'
	case aString:
		return n.tables&1 != 0
	case aQuoted, '/', '>', '[', '!', ':', '.':
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
		return n.isTableName(i) && (isFileName(name, true) || n.tokenKind(i-1) == '.' && n.hasClass(i-2, sqlFormat)) ||
			nameReadsFileOrRunsCode(name, n.tokenKind(i+1) == '.') && n.words.lookUpQuoted(name) == 0
	case '>': // ->> of Snowflake
		return t.start > 1 && n.text[t.start-2:t.end] == "->>" && n.startsStatement(i+1)
	case '[':
		return n.tables&1 != 0 && n.isTablePosition(i) && n.startsStatement(i+1)
	case '/', '!', ':', '.':
		return n.isClientCommand(i)
	}
	switch {
	case n.isClientCommand(i):
		return true
	case t.class == 0:
		return nameReadsFileOrRunsCode(n.tokenText(i), n.tokenKind(i+1) == '.')
	case n.tokenKind(i-1) == '.':
		return t.class&sqlFile != 0 && n.tokenKind(i+1) != '.' && n.tokenKind(i+1) != '(' && n.isTableName(i)
	case n.isWordAt(i, "apply"):
		return n.appliesUnknownFunction(i)
	case n.isWordAt(i, "using"): // uses a script in Hive and Spark
		k := n.tokenKind(i + 1)
		return k == aString || k == aQuoted || k == aWord && n.tokenKind(i+2) == aString && n.tokens[i+1].end+1 == n.tokens[i+2].start
	}
	if !n.isWordAt(i, "settings") || n.tokenKind(i+1) != aWord && n.tokenKind(i+1) != aQuoted {
		return false
	}
	return n.tokenKind(i+2) == '=' && !n.hasHarmlessSettings(i+1) || n.tokenKind(i+2) == '.' && n.tokenKind(i+4) == '='
}

// isTableName reports whether a token is the last part of a table name.
func (n *nestTracker) isTableName(i int) bool {
	for n.tokenKind(i-1) == '.' {
		i -= 2
	}
	return n.tables&1 != 0 && n.isTablePosition(i)
}

// startsStatement reports whether a token starts a statement that changes something. Such a word may also be a name,
// which is not followed by another name.
func (n *nestTracker) startsStatement(i int) bool {
	next := n.tokenKind(i + 1)
	return n.hasClass(i, sqlStarts|sqlDestroysFirst) && (next == aQuoted || next == aString || next == aWord && !n.hasClass(i+1, sqlClause|sqlWord) || n.hasClass(i+1, sqlObject))
}

// appliesUnknownFunction reports whether APPLY of ClickHouse calls a function by name that is not on the list.
func (n *nestTracker) appliesUnknownFunction(i int) bool {
	if n.isWordAt(i-1, "cross") || n.isWordAt(i-1, "outer") {
		return false
	}
	if i++; n.tokenKind(i) == '(' {
		i++
	}
	switch next := n.tokenKind(i + 1); {
	case next == '(', next == ',', next == '-', next == '.': // a call, or the parameter of a lambda
		return false
	case n.tokenKind(i) == aQuoted:
		return n.words.lookUpQuoted(n.tokenText(i))&sqlFunction == 0
	}
	return n.tokenKind(i) == aWord && n.tokens[i].class&(sqlFunction|sqlClause|sqlWord) == 0
}

// newFinding returns the finding for a doubtful token.
func (n *nestTracker) newFinding(i int) sqlFinding {
	switch k := n.tokenKind(i); {
	case n.isClientCommand(i):
		return sqlFinding{verdict: verdict{Operation: policy.Write, Word: "several statements"}}
	case k == aString || k == aQuoted && isFileName(n.tokenText(i), true):
		return sqlFinding{verdict: verdict{Operation: policy.Write, Word: "a file"}}
	}
	return sqlFinding{verdict{Operation: policy.Write}, i, false}
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
	return n.tokenKind(i+1) != '=' && n.tokenKind(i+1) != '.' // a quoted name
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
