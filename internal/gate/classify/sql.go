package classify

import (
	"strings"
	"sync"

	"mcpproxy/internal/gate/policy"
)

// lexers is a pool of lexers, to reuse their memory.
var lexers = sync.Pool{New: func() any { return &sqlLexer{} }}

// classifySQL returns the worst verdict of all dialects for a text.
func classifySQL(text string) verdict {
	if len(text) > maxText {
		return tooLong
	}
	l := lexers.Get().(*sqlLexer)
	defer lexers.Put(l)
	l.reset(text, 1<<len(dialects)-1)
	var r dialectVerdicts
	r.classifyStatements(l)
	v := r.worstOf(l.wanted)
	if l.shifty {
		v = v.worseOf(unparseableVerdict("a quote or comment whose end depends on the database"))
	}
	return v
}

// dialectVerdicts are the verdicts of all dialects.
type dialectVerdicts struct {
	worst                         [len(dialects)]verdict             // worst verdict of the statements, by dialect
	known                         [policy.Destructive + 1]dialectSet // dialects with a statement of this operation
	unread, some, several, broken dialectSet
}

// classifyStatements classifies the text of a lexer. If a statement is destructive in a dialect, it skips the
// dialects after that one.
func (r *dialectVerdicts) classifyStatements(l *sqlLexer) {
	for l.nextStatement() {
		if l.broken || l.refused {
			r.broken |= l.dialects
		}
		if len(l.tokens) > 0 && !l.refused {
			r.addStatement(sqlStatement{l, l.tokens})
		}
		if destroy := r.known[policy.Destructive]; destroy != 0 {
			l.wanted &= 2<<destroy.first() - 1
		}
	}
}

// addStatement adds the verdict of a statement.
func (r *dialectVerdicts) addStatement(s sqlStatement) {
	f := s.classify()
	if f.Unread {
		r.unread |= s.dialects
	}
	if f.Operation == policy.Read && !s.isComplete() {
		r.broken |= s.dialects
	}
	if worse := s.dialects &^ r.known[f.Operation]; worse != 0 {
		verdict := s.toVerdict(f)
		for ; worse != 0; worse &= worse - 1 {
			r.worst[worse.first()] = verdict
		}
		for o := range f.Operation + 1 {
			r.known[o] |= s.dialects
		}
	}
	r.several |= r.some & s.dialects
	r.some |= s.dialects
}

// worstOf returns the worst verdict of these dialects, and the first one of equal verdicts.
func (r *dialectVerdicts) worstOf(of dialectSet) (worst verdict) {
	for rest := of; rest != 0; rest &= rest - 1 {
		one, v := rest&-rest, r.worst[rest.first()]
		v.Unread = one&r.unread != 0
		switch {
		case one&r.several != 0:
			v = v.worseOf(verdict{Operation: policy.Write, Word: "several statements"})
		case one&(r.some|r.broken) == 0:
			v = unparseableVerdict("no statement")
		}
		worst = worst.worseOf(v)
	}
	if of&^r.broken == 0 && worst.Operation < policy.Destructive {
		worst = worst.worseOf(unparseableVerdict("a quote, comment or bracket without an end"))
	}
	return worst
}

// toVerdict returns the verdict of a finding with its word.
func (s sqlStatement) toVerdict(f sqlFinding) verdict {
	switch {
	case f.Operation <= policy.Read || f.Word != "":
	case f.call:
		name := s.tokenText(f.at)
		f.Word = strings.ToValidUTF8(name[:min(len(name), maxName)], "") + "()"
	default:
		f.Word = s.wordWithObject(f.at)
	}
	return f.verdict
}

// maxName limits the shown part of a function name.
const maxName = 48

// isComplete reports whether a statement is complete: its brackets match, and its last token does not require another
// one.
func (s sqlStatement) isComplete() bool {
	var open [3]int
	for i := range s.tokens {
		switch s.tokens[i].kind {
		case '(':
			open[0]++
		case ')':
			open[0]--
		case '[':
			open[1]++
		case ']':
			open[1]--
		case '{':
			open[2]++
		case '}':
			open[2]--
		default:
			continue
		}
		if min(open[0], open[1], open[2]) < 0 {
			return false
		}
	}
	last := len(s.tokens) - 1
	return open == [3]int{} && !s.hasClass(last, sqlGoesOn) && strings.IndexByte(",.=<>+-/|&", s.tokenKind(last)) < 0
}

// classify classifies one statement.
func (s sqlStatement) classify() sqlFinding {
	first := 0
	for s.tokenKind(first) == '(' {
		first++
	}
	worst := sqlFinding{verdict: readVerdict}
	switch {
	case s.hasClass(first, sqlDestroysFirst):
		return sqlFinding{verdict{Operation: policy.Destructive}, first, false}
	case !s.hasClass(first, sqlReads) && s.tokenKind(first) == aWord:
		worst = sqlFinding{verdict{Operation: policy.Write}, first, false}
	case !s.hasClass(first, sqlReads), s.tokenKind(first+1) == '.':
		worst.verdict = unparseableVerdict("no statement that is known")
	case first == 0:
		worst.verdict = s.classifyLeadingWord()
	}
	skip := first // an already classified word
	if s.isWordAt(first, "show") {
		skip++ // SHOW CREATE TABLE
	}
	if s.isWordAt(skip, "character") {
		skip++ // SHOW CHARACTER SET
	}
	n := nestTracker{sqlStatement: s}
	for i := range s.tokens {
		t, writes := &s.tokens[i], worst.Operation == policy.Write
		switch {
		case writes && t.class&(sqlDestroys|sqlPair) == 0 && t.kind != aDoubt:
			continue
		case t.class&(sqlDestroys|sqlWrites|sqlPair) != 0:
			if i > skip || i == first {
				worst = worst.worseOf(sqlFinding{verdict{Operation: s.classifyVerb(i, n.deep > 0)}, i, false})
			}
		case t.kind == '(' && i > 0 && !s.isWordAt(0, "pragma"):
			worst = worst.worseOf(sqlFinding{verdict{Operation: s.classifyFunctionCall(i - 1)}, i - 1, true})
		case t.kind == aDoubt:
			worst = worst.worseOf(sqlFinding{verdict: unparseableVerdict("a character that is not read")})
		case n.needsEffectCheck(i) && n.doesMoreThanRead(i):
			worst = worst.worseOf(n.newFinding(i))
		}
		if worst.Operation == policy.Destructive {
			break
		}
		if t.class&sqlClause != 0 || t.kind == '(' || t.kind == ')' {
			n.trackToken(i)
		}
	}
	return worst
}

// classifyLeadingWord classifies a first word that is a read only in some contexts.
func (s sqlStatement) classifyLeadingWord() verdict {
	ok := true
	switch {
	case s.isWordAt(0, "explain"), s.isWordAt(0, "describe"), s.isWordAt(0, "desc"):
		return s.classifyExplain()
	case s.isWordAt(0, "pragma"):
		return s.classifyPragma()
	case s.isWordAt(0, "with"):
		ok = s.hasMainQuery() // the main query of a WITH
	case s.isWordAt(0, "list"), s.isWordAt(0, "ls"): // the files of a stage
		ok = len(s.tokens) > 1 && s.text[s.tokens[1].start] == '@'
	case s.isWordAt(0, "exists"):
		ok = s.tokenKind(1) == aWord || s.tokenKind(1) == aQuoted
	case !s.isWordAt(0, "show"):
		ok = len(s.tokens) > 1
	}
	if !ok {
		return unparseableVerdict("no statement that is known")
	}
	return readVerdict
}

// hasMainQuery reports whether a query starts outside all brackets.
func (s sqlStatement) hasMainQuery() bool {
	deep := 0
	for i := range s.tokens {
		switch s.tokens[i].kind {
		case '(':
			deep++
		case ')':
			deep--
		case aWord:
			if deep == 0 && i > 0 && s.hasClass(i, sqlReads) && s.hasClass(i, sqlClause) && !s.isWordAt(i, "with") {
				return true
			}
		}
	}
	return false
}

// classifyExplain classifies EXPLAIN, which may execute the statement. A single name is a table.
func (s sqlStatement) classifyExplain() verdict {
	if s.isWordAt(1, "plan") && (s.isWordAt(2, "for") || s.isWordAt(2, "set") || s.isWordAt(2, "into")) {
		return verdict{Operation: policy.Write, Word: "EXPLAIN PLAN"} // writes to the plan table of Oracle and Db2
	}
	i := 1
	for i < len(s.tokens) && (s.hasClass(i, sqlExplains) || s.tokenKind(i) != aWord && s.tokenKind(i) != aQuoted && s.tokenKind(i) != aDoubt) {
		i++
	}
	if s.hasClass(i, sqlReads) && !s.isWordAt(i, "explain") && !s.isWordAt(i, "pragma") {
		return readVerdict
	}
	names := 0
	for at := 1; at < i; at++ {
		if s.isWordAt(at, "analyze") {
			return unparseableVerdict("what EXPLAIN ANALYZE runs")
		}
	}
	for at := 1; at < len(s.tokens); at++ {
		k := s.tokenKind(at)
		switch {
		case k != aWord && k != aQuoted && k != '.', k == aQuoted && isFileName(s.tokenText(at), true):
			names = 3
		case k != '.' && s.tokenKind(at-1) != '.' && !s.hasClass(at, sqlExplains|sqlObject):
			names++ // DESCRIBE table column
		}
	}
	if names > 2 || names > 1 && s.isWordAt(0, "explain") {
		return unparseableVerdict("what " + strings.ToUpper(s.tokenText(0)) + " is about")
	}
	return readVerdict
}

// classifyPragma classifies a PRAGMA of SQLite: [schema.]name, with no argument or one that sets nothing.
func (s sqlStatement) classifyPragma() verdict {
	name := 1
	if s.tokenKind(2) == '.' {
		name = 3
	}
	k := s.tokenKind(name + 2)
	with := s.tokenKind(name+1) == '(' && (k == aWord || k == aQuoted || k == aString || k == aNumber) && s.tokenKind(name+3) == ')' && len(s.tokens) == name+4
	switch {
	case s.tokenKind(name) != aWord:
	case s.hasClass(name, sqlPragma) && (with || len(s.tokens) == name+1),
		s.hasClass(name, sqlPlainPragma) && len(s.tokens) == name+1:
		return readVerdict
	default:
		return verdict{Operation: policy.Write, Word: "PRAGMA " + s.tokenText(name)}
	}
	return unparseableVerdict("PRAGMA")
}

// classifyVerb classifies a word that may change something at its position. deep means inside parentheses.
func (s sqlStatement) classifyVerb(i int, deep bool) policy.Operation {
	c := s.tokens[i].class
	switch {
	case s.tokenKind(i-1) == '.' && c&sqlWrites != 0 && s.isWordAt(i, "nextval"): // next value of a sequence
	case s.tokenKind(i-1) == '.' && i > 1 && s.tokenKind(i-2) != aNumber && s.text[s.tokens[i-2].start] != '$': // a qualified name
		return policy.Read
	case c&sqlName != 0 && strings.IndexByte("=<>!,)+", s.tokenKind(i+1)) >= 0 && s.tokenKind(i+1) != 0, // no statement continues like this
		c&sqlName != 0 && (s.isWordAt(i+1, "from") || s.isWordAt(i+1, "is")),
		deep && (s.isWordAt(i, "set") && s.isWordAt(i-1, "character") || s.isWordAt(i, "truncate") && s.isWordAt(i-1, "overflow")):
		return policy.Read
	case c&(sqlDestroys|sqlWrites) != 0 && s.tokenKind(i+1) == '(' && c&sqlFunction != 0: // REPLACE(…)
		return policy.Read
	case c&sqlDestroys != 0 && !s.isForeignKeyAction(i):
		return policy.Destructive
	case c&sqlDestroys != 0:
	case s.isWordAt(i, "use") && (s.isWordAt(i+1, "index") || s.isWordAt(i+1, "key")):
		return policy.Read
	case c&sqlPair != 0 && s.classifyWordPair(i) > policy.Read:
		return s.classifyWordPair(i)
	case c&sqlWrites == 0:
		return policy.Read
	}
	return policy.Write
}

// classifyWordPair classifies a word together with the next or previous one.
func (s sqlStatement) classifyWordPair(i int) policy.Operation {
	p := sqlPairs()[strings.ToLower(s.tokenText(i))]
	beside := i + 1
	if p.after {
		beside = i - 1
	}
	for _, w := range p.words {
		if s.isWordAt(beside, w) {
			return p.does
		}
	}
	return policy.Read
}

// isForeignKeyAction reports whether a word belongs to a foreign key action: ON DELETE CASCADE.
func (s sqlStatement) isForeignKeyAction(i int) bool {
	return s.isWordAt(i, "delete") && s.isWordAt(i-1, "on") &&
		(s.isWordAt(i+1, "cascade") || s.isWordAt(i+1, "set") || s.isWordAt(i+1, "no") || s.isWordAt(i+1, "restrict"))
}

// classifyFunctionCall classifies a function call.
func (s sqlStatement) classifyFunctionCall(i int) policy.Operation {
	t := s.tokens[i]
	switch t.kind {
	case aWord:
	case aQuoted:
		t.class = s.words.lookUpQuoted(s.tokenText(i)) & sqlFunction // a quoted name is not a keyword
	case aString, ']': // a call whose name is a string or in brackets
		return policy.Write
	default:
		return policy.Read
	}
	switch {
	case s.tokenKind(i+2) == '+' && s.tokenKind(i+3) == ')': // Oracle's outer join
		return policy.Read
	case s.tokenKind(i-1) == '.' && s.tokenKind(i-2) != aNumber:
		if !(s.hasClass(i-2, sqlSchema) && s.tokenKind(i-3) != '.') {
			t.class = 0
		}
	case t.class&sqlContext != 0 && t.class&sqlFunction == 0 && s.startsExpression(i) && !s.isWithQueryColumns(i):
		return policy.Write
	case t.class&sqlWord != 0, s.isWordAt(i-1, "as"), s.isWithQueryColumns(i), s.isAliasWithColumns(i),
		(s.isWordAt(i-1, "tablesample") || s.isWordAt(i-1, "sample")) && (s.isWordAt(i, "bernoulli") || s.isWordAt(i, "system") || s.isWordAt(i, "reservoir")),
		s.tokenKind(i+3) == '=' && s.tokenKind(i+4) == '>' && (s.isWordAt(i, "at") || s.isWordAt(i, "before") || s.isWordAt(i, "changes")): // time travel
		return policy.Read
	}
	if t.class&sqlFunction != 0 {
		return policy.Read
	}
	return policy.Write
}

// startsExpression reports whether an expression or a table starts at a token.
func (s sqlStatement) startsExpression(i int) bool {
	switch s.tokenKind(i - 1) {
	case ',', '(', '=', '<', '>', '+', '-', '/', '|':
		return true
	case aWord:
		return s.hasClass(i-1, sqlClause|sqlGoesOn) || s.isWordAt(i-1, "distinct") || s.isWordAt(i-1, "when") || s.isWordAt(i-1, "then") || s.isWordAt(i-1, "else") || s.isWordAt(i-1, "lateral")
	}
	return false
}

// isAliasWithColumns reports whether a name after a parenthesis is an alias with columns, without AS: (VALUES (1, 2))
// t (a, b).
func (s sqlStatement) isAliasWithColumns(i int) bool {
	if s.tokenKind(i-1) != ')' {
		return false
	}
	for i += 2; s.tokenKind(i) == aWord || s.tokenKind(i) == aQuoted; i++ {
		if s.tokenKind(i+1) == ',' {
			i++
		}
	}
	return s.tokenKind(i) == ')'
}

// isWithQueryColumns reports whether a name is the name of a WITH query with columns: name (a, b) AS (SELECT.
func (s sqlStatement) isWithQueryColumns(i int) bool {
	if !s.isWordAt(i-1, "with") && !s.isWordAt(i-1, "recursive") && s.tokenKind(i-1) != ',' {
		return false
	}
	i += 2
	for s.tokenKind(i) == aWord || s.tokenKind(i) == aQuoted || s.tokenKind(i) == ',' {
		i++
	}
	if s.tokenKind(i) != ')' || !s.isWordAt(i+1, "as") {
		return false
	}
	for i += 2; s.isWordAt(i, "not") || s.isWordAt(i, "materialized"); i++ {
	}
	return s.tokenKind(i) == '(' && (s.hasClass(i+1, sqlReads) && s.hasClass(i+1, sqlClause) || s.tokenKind(i+1) == '(')
}
