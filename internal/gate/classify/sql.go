package classify

import (
	"strings"
	"sync"

	"mcpproxy/internal/gate/policy"
)

// lexers pools the lexers for their memory.
var lexers = sync.Pool{New: func() any { return &lexer{} }}

// classifySQL returns the worst verdict of all dialects for a text.
func classifySQL(text string) verdict {
	if len(text) > maxText {
		return tooLong
	}
	l := lexers.Get().(*lexer)
	defer lexers.Put(l)
	l.begin(text, 1<<len(dialects)-1)
	var r readings
	r.of(l)
	v := r.verdict(l.wanted)
	if l.shifty {
		v = v.worse(unread("a quote or comment whose end depends on the database"))
	}
	return v
}

// readings are the verdicts of all dialects.
type readings struct {
	worst                         [len(dialects)]verdict             // of their statements
	known                         [policy.Destructive + 1]dialectSet // dialects with a statement this bad
	unread, some, several, broken dialectSet
}

// definition classifies the text of a lexer. After one dialect with a destructive verdict it skips the rest.
func (r *readings) of(l *lexer) {
	for l.statement() {
		if l.broken || l.refused {
			r.broken |= l.dialects
		}
		if len(l.tokens) > 0 && !l.refused {
			r.add(statement{l, l.tokens})
		}
		if destroy := r.known[policy.Destructive]; destroy != 0 {
			l.wanted &= 2<<destroy.first() - 1
		}
	}
}

// add adds the verdict of a statement.
func (r *readings) add(s statement) {
	f := s.classify()
	if f.Unread {
		r.unread |= s.dialects
	}
	if f.Operation == policy.Read && !s.ends() {
		r.broken |= s.dialects
	}
	if worse := s.dialects &^ r.known[f.Operation]; worse != 0 {
		verdict := s.verdict(f)
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

// verdict returns the worst verdict of these dialects, the first of equals.
func (r *readings) verdict(of dialectSet) (worst verdict) {
	for rest := of; rest != 0; rest &= rest - 1 {
		one, v := rest&-rest, r.worst[rest.first()]
		v.Unread = one&r.unread != 0
		switch {
		case one&r.several != 0:
			v = v.worse(verdict{Operation: policy.Write, Word: "several statements"})
		case one&(r.some|r.broken) == 0:
			v = unread("no statement")
		}
		worst = worst.worse(v)
	}
	if of&^r.broken == 0 && worst.Operation < policy.Destructive {
		worst = worst.worse(unread("a quote, comment or bracket without an end"))
	}
	return worst
}

// verdict adds the word of a finding.
func (s statement) verdict(f finding) verdict {
	switch {
	case f.Operation <= policy.Read || f.Word != "":
	case f.call:
		name := s.word(f.at)
		f.Word = strings.ToValidUTF8(name[:min(len(name), maxName)], "") + "()"
	default:
		f.Word = s.said(f.at)
	}
	return f.verdict
}

// maxName limits the shown part of a function name.
const maxName = 48

// dashesEnd reports whether a statement is complete: brackets match, and its last token needs no other.
func (s statement) ends() bool {
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
	return open == [3]int{} && !s.has(last, sqlGoesOn) && strings.IndexByte(",.=<>+-/|&", s.kind(last)) < 0
}

// classify classifies one statement.
func (s statement) classify() finding {
	first := 0
	for s.kind(first) == '(' {
		first++
	}
	worst := finding{verdict: reading}
	switch {
	case s.has(first, sqlDestroysFirst):
		return finding{verdict{Operation: policy.Destructive}, first, false}
	case !s.has(first, sqlReads) && s.kind(first) == aWord:
		worst = finding{verdict{Operation: policy.Write}, first, false}
	case !s.has(first, sqlReads), s.kind(first+1) == '.':
		worst.verdict = unread("no statement that is known")
	case first == 0:
		worst.verdict = s.leading()
	}
	skip := first // an already classified word
	if s.is(first, "show") {
		skip++ // SHOW CREATE TABLE
	}
	if s.is(skip, "character") {
		skip++ // SHOW CHARACTER SET
	}
	n := nest{statement: s}
	for i := range s.tokens {
		t, writes := &s.tokens[i], worst.Operation == policy.Write
		switch {
		case writes && t.class&(sqlDestroys|sqlPair) == 0 && t.kind != aDoubt:
			continue
		case t.class&(sqlDestroys|sqlWrites|sqlPair) != 0:
			if i > skip || i == first {
				worst = worst.worse(finding{verdict{Operation: s.verb(i, n.deep > 0)}, i, false})
			}
		case t.kind == '(' && i > 0 && !s.is(0, "pragma"):
			worst = worst.worse(finding{verdict{Operation: s.call(i - 1)}, i - 1, true})
		case t.kind == aDoubt:
			worst = worst.worse(finding{verdict: unread("a character that is not read")})
		case n.doubtful(i) && n.doubt(i):
			worst = worst.worse(n.finding(i))
		}
		if worst.Operation == policy.Destructive {
			break
		}
		if t.class&sqlClause != 0 || t.kind == '(' || t.kind == ')' {
			n.step(i)
		}
	}
	return worst
}

// leading classifies a first word that reads only in some contexts.
func (s statement) leading() verdict {
	ok := true
	switch {
	case s.is(0, "explain"), s.is(0, "describe"), s.is(0, "desc"):
		return s.explained()
	case s.is(0, "pragma"):
		return s.pragma()
	case s.is(0, "with"):
		ok = s.main() // the main query of a WITH
	case s.is(0, "list"), s.is(0, "ls"): // the files of a stage
		ok = len(s.tokens) > 1 && s.text[s.tokens[1].start] == '@'
	case s.is(0, "exists"):
		ok = s.kind(1) == aWord || s.kind(1) == aQuoted
	case !s.is(0, "show"):
		ok = len(s.tokens) > 1
	}
	if !ok {
		return unread("no statement that is known")
	}
	return reading
}

// main reports whether a query starts outside of all brackets.
func (s statement) main() bool {
	deep := 0
	for i := range s.tokens {
		switch s.tokens[i].kind {
		case '(':
			deep++
		case ')':
			deep--
		case aWord:
			if deep == 0 && i > 0 && s.has(i, sqlReads) && s.has(i, sqlClause) && !s.is(i, "with") {
				return true
			}
		}
	}
	return false
}

// explained classifies EXPLAIN, which may execute the statement. A single name is a table.
func (s statement) explained() verdict {
	if s.is(1, "plan") && (s.is(2, "for") || s.is(2, "set") || s.is(2, "into")) {
		return verdict{Operation: policy.Write, Word: "EXPLAIN PLAN"} // writes to the plan table of Oracle and Db2
	}
	i := 1
	for i < len(s.tokens) && (s.has(i, sqlExplains) || s.kind(i) != aWord && s.kind(i) != aQuoted && s.kind(i) != aDoubt) {
		i++
	}
	if s.has(i, sqlReads) && !s.is(i, "explain") && !s.is(i, "pragma") {
		return reading
	}
	names := 0
	for at := 1; at < len(s.tokens); at++ {
		k := s.kind(at)
		switch {
		case k != aWord && k != aQuoted && k != '.', k == aQuoted && isFile(s.word(at), true):
			names = 3
		case k != '.' && s.kind(at-1) != '.' && !s.has(at, sqlExplains|sqlObject):
			names++ // DESCRIBE table column
		}
	}
	if names > 2 || names > 1 && s.is(0, "explain") {
		return unread("what " + strings.ToUpper(s.word(0)) + " is about")
	}
	return reading
}

// pragma classifies a PRAGMA of SQLite: [schema.]name, with at most one argument that sets nothing.
func (s statement) pragma() verdict {
	name := 1
	if s.kind(2) == '.' {
		name = 3
	}
	k := s.kind(name + 2)
	with := s.kind(name+1) == '(' && (k == aWord || k == aQuoted || k == aString || k == aNumber) && s.kind(name+3) == ')' && len(s.tokens) == name+4
	switch {
	case s.kind(name) != aWord:
	case s.has(name, sqlPragma) && (with || len(s.tokens) == name+1),
		s.has(name, sqlPlainPragma) && len(s.tokens) == name+1:
		return reading
	default:
		return verdict{Operation: policy.Write, Word: "PRAGMA " + s.word(name)}
	}
	return unread("PRAGMA")
}

// verb classifies a word that may change something at its position, in parentheses or not.
func (s statement) verb(i int, deep bool) policy.Operation {
	c := s.tokens[i].class
	switch {
	case s.kind(i-1) == '.' && c&sqlWrites != 0 && s.is(i, "nextval"): // of a sequence
	case s.kind(i-1) == '.' && i > 1 && s.kind(i-2) != aNumber && s.text[s.tokens[i-2].start] != '$': // a qualified name
		return policy.Read
	case c&sqlName != 0 && strings.IndexByte("=<>!,)+", s.kind(i+1)) >= 0 && s.kind(i+1) != 0, // no statement continues like this
		c&sqlName != 0 && (s.is(i+1, "from") || s.is(i+1, "is")),
		deep && (s.is(i, "set") && s.is(i-1, "character") || s.is(i, "truncate") && s.is(i-1, "overflow")):
		return policy.Read
	case c&(sqlDestroys|sqlWrites) != 0 && s.kind(i+1) == '(' && c&sqlFunction != 0: // REPLACE(…)
		return policy.Read
	case c&sqlDestroys != 0 && !s.reference(i):
		return policy.Destructive
	case c&sqlDestroys != 0:
	case s.is(i, "use") && (s.is(i+1, "index") || s.is(i+1, "key")):
		return policy.Read
	case c&sqlPair != 0 && s.pair(i) > policy.Read:
		return s.pair(i)
	case c&sqlWrites == 0:
		return policy.Read
	}
	return policy.Write
}

// pair classifies a word together with the next or previous one.
func (s statement) pair(i int) policy.Operation {
	p := sqlPairs()[strings.ToLower(s.word(i))]
	beside := i + 1
	if p.after {
		beside = i - 1
	}
	for _, w := range p.words {
		if s.is(beside, w) {
			return p.does
		}
	}
	return policy.Read
}

// reference reports whether a word belongs to a foreign key action: ON DELETE CASCADE.
func (s statement) reference(i int) bool {
	return s.is(i, "delete") && s.is(i-1, "on") &&
		(s.is(i+1, "cascade") || s.is(i+1, "set") || s.is(i+1, "no") || s.is(i+1, "restrict"))
}

// call classifies a function call.
func (s statement) call(i int) policy.Operation {
	t := s.tokens[i]
	switch t.kind {
	case aWord:
	case aQuoted:
		t.class = s.words.inQuotes(s.word(i)) & sqlFunction // a quoted name is no keyword
	case aString, ']': // a call whose name is a string or in brackets
		return policy.Write
	default:
		return policy.Read
	}
	switch {
	case s.kind(i+2) == '+' && s.kind(i+3) == ')': // Oracle's outer join
		return policy.Read
	case s.kind(i-1) == '.' && s.kind(i-2) != aNumber:
		if !(s.has(i-2, sqlSchema) && s.kind(i-3) != '.') {
			t.class = 0
		}
	case t.class&sqlWord != 0, s.is(i-1, "as"), s.columns(i), s.alias(i),
		(s.is(i-1, "tablesample") || s.is(i-1, "sample")) && (s.is(i, "bernoulli") || s.is(i, "system") || s.is(i, "reservoir")),
		s.kind(i+3) == '=' && s.kind(i+4) == '>' && (s.is(i, "at") || s.is(i, "before") || s.is(i, "changes")): // time travel
		return policy.Read
	}
	if t.class&sqlFunction != 0 {
		return policy.Read
	}
	return policy.Write
}

// alias reports whether a name after a parenthesis is its alias with columns, without AS: (VALUES (1, 2))
// t (a, b).
func (s statement) alias(i int) bool {
	if s.kind(i-1) != ')' {
		return false
	}
	for i += 2; s.kind(i) == aWord || s.kind(i) == aQuoted; i++ {
		if s.kind(i+1) == ',' {
			i++
		}
	}
	return s.kind(i) == ')'
}

// columns reports whether a name is that of a WITH query with columns: name (a, b) AS (SELECT.
func (s statement) columns(i int) bool {
	if !s.is(i-1, "with") && !s.is(i-1, "recursive") && s.kind(i-1) != ',' {
		return false
	}
	i += 2
	for s.kind(i) == aWord || s.kind(i) == aQuoted || s.kind(i) == ',' {
		i++
	}
	if s.kind(i) != ')' || !s.is(i+1, "as") {
		return false
	}
	for i += 2; s.is(i, "not") || s.is(i, "materialized"); i++ {
	}
	return s.kind(i) == '(' && (s.has(i+1, sqlReads) && s.has(i+1, sqlClause) || s.kind(i+1) == '(')
}
