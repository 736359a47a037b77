package lane

import (
	"strings"
	"sync"

	"mcpproxy/internal/policy"
)

// lexers are used again for their memory.
var lexers = sync.Pool{New: func() any { return &lexer{} }}

// readSQL judges a text of SQL by the worst of its readings.
func readSQL(text string) Verdict {
	if len(text) > maxText {
		return tooLong
	}
	l := lexers.Get().(*lexer)
	defer lexers.Put(l)
	l.text, l.words, l.passes = text, sqlWords(), l.passes[:0]
	worst, sound := Verdict{}, false
	for _, d := range dialects {
		if !l.turn(d) {
			continue
		}
		l.run()
		worst = worst.worse(l.judge())
		sound = sound || !l.broken
		if worst.Operation == policy.Destructive {
			return worst
		}
	}
	if !sound {
		return worst.worse(unread("a quote without an end"))
	}
	return worst
}

// judge judges the statements that the tokens make.
func (l *lexer) judge() Verdict {
	worst, statements := Verdict{}, 0
	for from, i, at := 0, 0, 0; i <= len(l.tokens); i++ {
		if i < len(l.tokens) && l.tokens[i].kind != ';' {
			continue
		}
		if i > from {
			statements++
			s := statement{l, l.tokens[from:i]}
			v := l.before.again(s.tokens, &at)
			if v.Operation == policy.NoOperation {
				v = s.judge()
			}
			l.verdicts = append(l.verdicts, judged{from, i, v})
			worst = worst.worse(v)
		}
		from = i + 1
	}
	switch {
	case statements > 1:
		return worst.worse(Verdict{Operation: policy.Write, Word: "several statements"})
	case statements == 0 && !l.broken:
		return unread("no statement")
	}
	return worst
}

// statement is what stands between two semicolons.
type statement struct {
	*lexer
	tokens []token
}

func (s statement) word(i int) string { return s.text[s.tokens[i].start:s.tokens[i].end] }

func (s statement) kind(i int) byte {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].kind
}

// is reports whether there is this word.
func (s statement) is(i int, word string) bool {
	return s.kind(i) == aWord && strings.EqualFold(s.word(i), word)
}

func (s statement) has(i int, c class) bool { return s.kind(i) == aWord && s.tokens[i].class&c != 0 }

// said is a word as a refusal shows it, with the object that it is about.
func (s statement) said(i int) string {
	said := strings.ToUpper(s.word(i))
	if s.has(i+1, sqlObject) {
		said += " " + strings.ToUpper(s.word(i+1))
	}
	return said
}

// judge judges one statement.
func (s statement) judge() Verdict {
	first := 0
	for s.kind(first) == '(' {
		first++
	}
	worst := reading
	switch {
	case s.has(first, sqlDestroysFirst):
		return Verdict{Operation: policy.Destructive, Word: s.said(first)}
	case !s.has(first, sqlReads) && s.kind(first) == aWord:
		worst = Verdict{Operation: policy.Write, Word: s.said(first)}
	case !s.has(first, sqlReads), s.kind(first+1) == '.':
		worst = unread("no statement that is known")
	case first == 0:
		worst = s.leading()
	}
	skip := first // the word that has been judged
	if s.is(first, "show") {
		skip++ // SHOW CREATE TABLE
	}
	for i := range s.tokens {
		switch s.tokens[i].kind {
		case aDoubt:
			worst = worst.worse(unread("a character that is not read"))
		case aWord:
			if s.tokens[i].class&(sqlDestroys|sqlWrites|sqlPair) != 0 && (i > skip || i == first) {
				worst = worst.worse(s.verb(i))
			}
			if s.kind(i+1) == '(' {
				worst = worst.worse(s.call(i))
			}
		case aQuoted:
			if s.kind(i+1) == '(' {
				worst = worst.worse(s.call(i))
			}
		}
		if worst.Operation == policy.Destructive {
			break
		}
	}
	return worst
}

// leading judges a first word that reads only with what follows it.
func (s statement) leading() Verdict {
	switch {
	case s.is(0, "explain"), s.is(0, "describe"), s.is(0, "desc"):
		return s.explained()
	case s.is(0, "pragma"):
		return s.pragma()
	case s.is(0, "values") || s.is(0, "with") || s.is(0, "from") || s.is(0, "table"):
		if len(s.tokens) == 1 {
			return unread("no statement that is known")
		}
	}
	return reading
}

// explained judges EXPLAIN: what is explained may be executed. A name alone is a table.
func (s statement) explained() Verdict {
	i := 1
	for i < len(s.tokens) && (s.has(i, sqlExplains) || s.kind(i) != aWord && s.kind(i) != aQuoted && s.kind(i) != aDoubt) {
		i++
	}
	if s.has(i, sqlReads) && !s.is(i, "explain") && !s.is(i, "pragma") {
		return reading
	}
	for at := 1; at < len(s.tokens); at++ {
		if k := s.kind(at); k != aWord && k != aQuoted && k != '.' || k == aWord && s.kind(at-1) == aWord && at > 1 && !s.is(at-1, "table") && !s.has(at-1, sqlExplains) {
			return unread("what " + strings.ToUpper(s.word(0)) + " is about")
		}
	}
	return reading
}

// pragma judges a PRAGMA of SQLite: [schema.]name, with an argument at most that does
// not set anything.
func (s statement) pragma() Verdict {
	name := 1
	if s.kind(2) == '.' {
		name = 3
	}
	switch {
	case s.kind(name) != aWord:
	case s.has(name, sqlPragma) && (s.kind(name+1) == '(' || s.kind(name+1) == 0),
		s.has(name, sqlPlainPragma) && s.kind(name+1) == 0:
		return reading
	default:
		return Verdict{Operation: policy.Write, Word: "PRAGMA " + s.word(name)}
	}
	return unread("PRAGMA")
}

// verb judges a word that may change something where it stands.
func (s statement) verb(i int) Verdict {
	c := s.tokens[i].class
	switch {
	case s.kind(i-1) == '.' && c&sqlWrites != 0 && s.is(i, "nextval"): // of a sequence
	case s.kind(i-1) == '.' && i > 1 && s.kind(i-2) != aNumber: // the name of something
		return reading
	case c&(sqlDestroys|sqlWrites) != 0 && s.kind(i+1) == '(' && c&sqlFunction != 0: // REPLACE(…)
		return reading
	case c&sqlDestroys != 0 && !s.reference(i):
		return Verdict{Operation: policy.Destructive, Word: s.said(i)}
	case c&sqlDestroys != 0:
	case s.is(i, "share") || s.is(i, "key"):
		if !s.is(i-1, "for") {
			return reading
		}
	case s.is(i, "lock"):
		if !s.is(i+1, "in") && i > 0 {
			return reading
		}
	case s.is(i, "value"):
		if !s.is(i-1, "next") || !s.is(i+1, "for") {
			return reading
		}
	case s.is(i, "use") && (s.is(i+1, "index") || s.is(i+1, "key")):
		return reading
	case c&sqlWrites == 0:
		return reading
	}
	return Verdict{Operation: policy.Write, Word: s.said(i)}
}

// reference reports whether a word says what happens to rows that refer to one that is
// deleted: ON DELETE CASCADE.
func (s statement) reference(i int) bool {
	return s.is(i, "delete") && s.is(i-1, "on") &&
		(s.is(i+1, "cascade") || s.is(i+1, "set") || s.is(i+1, "no") || s.is(i+1, "restrict"))
}

// call judges what stands before a parenthesis.
func (s statement) call(i int) Verdict {
	t, name := s.tokens[i], s.word(i)
	if t.kind == aQuoted {
		t.class = s.words[name] & sqlFunction // no word of the language stands in quotes
	}
	switch {
	case s.kind(i-1) == '.' && s.kind(i-2) != aNumber:
		if !(s.has(i-2, sqlSchema) && s.kind(i-3) != '.') {
			t.class = 0
		}
	case t.class&sqlWord != 0, s.is(i-1, "as"), s.columns(i):
		return reading
	}
	if t.class&sqlFunction != 0 {
		return reading
	}
	if len(name) > maxWord {
		name = name[:maxWord]
	}
	return Verdict{Operation: policy.Write, Word: strings.ToValidUTF8(name, "") + "()"}
}

// columns reports whether a name is that of a query in WITH, with its columns: name
// (a, b) AS (SELECT.
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
	return s.kind(i) == '(' && (s.is(i+1, "select") || s.is(i+1, "values") || s.is(i+1, "with"))
}
