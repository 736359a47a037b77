package lane

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// dialect is how a database finds the ends of quotes and comments: a bit for each
// thing in which they differ.
type dialect uint16

const (
	backslash       dialect = 1 << iota // \ in '…' takes the next character
	backslashInID                       // the same in "…"
	backslashInBT                       // the same in `…`
	backtick                            // `…` is a quote
	brackets                            // […] is a quote
	dollar                              // $tag$…$tag$ is a quote
	escapeString                        // E'…' has backslashes
	oracleQuote                         // q'[…]' is a quote
	triple                              // '''…''' is a quote
	nested                              // comments nest
	executable                          // /*! … */ is no comment
	hash                                // # begins a comment
	slashes                             // // begins a comment
	dashesWithSpace                     // -- begins one only before a blank
	endsAtReturn                        // which a carriage return ends
)

// dialects are the ways in which databases read a text. Each is read; the worst
// reading counts.
var dialects = [...]dialect{
	0, // standard SQL: Oracle, Trino, Db2
	nested | dollar | escapeString | endsAtReturn,                              // PostgreSQL, DuckDB
	nested | dollar | escapeString | endsAtReturn | backslash,                  // without standard_conforming_strings
	backslash | backslashInID | hash | dashesWithSpace | executable | backtick, // MySQL, MariaDB
	backslash | backslashInID | hash | dashesWithSpace | backtick,              // of an earlier version than the comment wants
	backslash | hash | dashesWithSpace | executable | backtick,                 // ANSI_QUOTES
	backslash | hash | dashesWithSpace | backtick,
	hash | dashesWithSpace | executable | backtick, // NO_BACKSLASH_ESCAPES
	hash | dashesWithSpace | backtick,
	brackets | backtick, // SQLite
	brackets | nested,   // SQL Server
	oracleQuote,
	backslash | backslashInID | hash | backtick | backslashInBT | triple, // BigQuery
	backslash | dollar | slashes,                                         // Snowflake
	backslash | backslashInID | backtick | backslashInBT | dollar,        // ClickHouse, Spark
	backslash | backslashInID | backtick | backslashInBT | dollar | hash,
}

// The kinds of tokens beside single characters, which are their own kind.
const (
	aWord   = 'a'
	aQuoted = '"' // an identifier in quotes, or what may be one
	aString = '\''
	aNumber = '0'
	aDoubt  = '?' // a character that no statement has outside of quotes
)

type token struct {
	kind       byte
	class      class // of a word
	start, end int32 // of a word, and of what is in the quotes
}

// lexer finds the tokens of a text as one dialect has them.
type lexer struct {
	text  string
	words map[string]class
	*pass
	before *pass // of the dialect that is most like it, much of which is the same
	passes []pass
}

// pass is a text as one dialect has it.
type pass struct {
	as       dialect
	asked    dialect // of all steps: a dialect that differs in none of it reads the same
	tokens   []token
	steps    []step
	verdicts []judged
	inside   int  // executable comments
	broken   bool // a quote has no end: no database takes such a text
}

// judged is how a statement was judged.
type judged struct {
	from, to int // its tokens
	Verdict
}

// again returns the verdict on a statement that the dialect before has in the same way;
// no operation where it has not. at is where to look, and moves on.
func (b *pass) again(tokens []token, at *int) Verdict {
	for ; *at < len(b.verdicts); *at++ {
		was := &b.verdicts[*at]
		if b.tokens[was.from].start >= tokens[0].start {
			if slices.Equal(b.tokens[was.from:was.to], tokens) {
				return was.Verdict
			}
			break
		}
	}
	return Verdict{}
}

// step is what next has read at one place, with the blanks after it.
type step struct {
	at, end int32
	tokens  int32 // how many there were before it
	asked   dialect
}

// everything is all bits of a dialect.
const everything = ^dialect(0)

func (l *lexer) add(kind byte, start, end int) {
	l.tokens = append(l.tokens, token{kind: kind, start: int32(start), end: int32(end)})
}

// turn makes the lexer ready to read the text as another dialect. It reports whether that
// may be another reading.
func (l *lexer) turn(as dialect) bool {
	nearest, like := bits.UintSize, -1
	for i := range l.passes {
		differ := as ^ l.passes[i].as
		if differ&l.passes[i].asked == 0 {
			return false
		}
		if apart := bits.OnesCount16(uint16(differ)); apart < nearest {
			nearest, like = apart, i
		}
	}
	n := len(l.passes)
	l.passes = slices.Grow(l.passes, 1)[:n+1]
	l.pass, l.before = &l.passes[n], &pass{}
	if like >= 0 {
		l.before = &l.passes[like]
	}
	*l.pass = pass{as: as, tokens: l.tokens[:0], steps: l.steps[:0], verdicts: l.verdicts[:0]}
	return true
}

// run reads the whole text. What the dialect before has read in the same way is taken
// from there.
func (l *lexer) run() {
	steps := l.before.steps
	for i, k := 0, 0; i < len(l.text) && !l.broken; {
		for k < len(steps) && steps[k].at < int32(i) {
			k++
		}
		if k < len(steps) && steps[k].at == int32(i) {
			if same := l.same(k); same > k {
				l.take(k, same)
				k, i = same, int(steps[same-1].end)
				continue
			}
		}
		one, end := step{at: int32(i), tokens: int32(len(l.tokens))}, l.next(i)
		if asks[l.text[i]] {
			one.asked = asked(l.text, i, end)
			l.asked |= one.asked
		}
		i = l.blanks(end)
		one.end = int32(i)
		l.steps = append(l.steps, one)
	}
}

// same returns the first step from k on that the dialect before may have read otherwise.
func (l *lexer) same(k int) int {
	differ := l.as ^ l.before.as
	for k < len(l.before.steps) && l.before.steps[k].asked&differ == 0 {
		k++
	}
	return k
}

// take takes the steps from k to end of the dialect before.
func (l *lexer) take(k, end int) {
	b := l.before
	last := int32(len(b.tokens))
	if end < len(b.steps) {
		last = b.steps[end].tokens
	} else {
		l.broken = b.broken
	}
	first := b.steps[k].tokens
	moved, from := int32(len(l.tokens))-first, len(l.steps)
	l.tokens, l.steps = append(l.tokens, b.tokens[first:last]...), append(l.steps, b.steps[k:end]...)
	for i := from; i < len(l.steps); i++ {
		l.steps[i].tokens += moved
		l.asked |= l.steps[i].asked
	}
}

// asks has the characters with which begins what dialects may read otherwise.
var asks = func() (is [256]bool) {
	for _, c := range []byte("0123456789eEqQnN-#*/'\"`[$") {
		is[c] = true
	}
	return is
}()

// asked returns the bits of the dialect on which it depends what was read from i to end:
// a dialect that has the others otherwise reads the same. All of them are asked where it
// depends on more than the text from i on.
func asked(text string, i, end int) (d dialect) {
	s, read := text[i:], text[i:end]
	second, third := byte(0), byte(0)
	if len(s) > 1 {
		second = s[1]
	}
	if len(s) > 2 {
		third = s[2]
	}
	also := func(bit dialect, matters bool) {
		if matters {
			d |= bit
		}
	}
	// A comment to the end of its line: the character at end is the one that ended it.
	returns := func() bool { return strings.IndexByte(text[i:min(end+1, len(text))], '\r') >= 0 }
	switch c := s[0]; {
	case '0' <= c && c <= '9':
		also(escapeString|oracleQuote|endsAtReturn|triple, len(s) > len(read) && s[len(read)] == '\'')
	case c|0x20 == 'e', c|0x20 == 'q':
		also(escapeString|oracleQuote|endsAtReturn|triple, second == '\'')
	case c|0x20 == 'n':
		also(oracleQuote, second|0x20 == 'q' && third == '\'')
	case c == '-' && second == '-':
		also(dashesWithSpace, third > ' ')
		also(endsAtReturn, returns())
	case c == '#':
		d = hash
		also(endsAtReturn, returns())
	case c == '*' && second == '/', c == '/' && second == '*' && (third == '!' || third == 'M'):
		return everything
	case c == '/' && second == '*':
		also(nested, strings.Contains(read[2:], "/*"))
	case c == '/' && second == '/':
		d = slashes
		also(endsAtReturn, returns())
	case c == '\'', c == '"':
		also(triple, second == c && third == c)
		also(backslash|backslashInID, strings.IndexByte(read, '\\') >= 0)
	case c == '`':
		return backtick | backslashInBT
	case c == '[':
		return brackets
	case c == '$':
		return dollar
	}
	return d
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// blanks skips them.
func (l *lexer) blanks(i int) int {
	for i < len(l.text) && blank(l.text[i]) {
		i++
	}
	return i
}

// next reads what begins at i, and returns where it ends.
func (l *lexer) next(i int) int {
	s := l.text
	c := s[i]
	after := byte(0)
	if i+1 < len(s) {
		after = s[i+1]
	}
	switch {
	case blank(c):
		return l.blanks(i)
	case 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '@':
		return l.word(i)
	case '0' <= c && c <= '9':
		return l.number(i)
	case c == '-' && after == '-' && (l.as&dashesWithSpace == 0 || i+2 >= len(s) || s[i+2] <= ' '),
		c == '#' && l.as&hash != 0, c == '/' && after == '/' && l.as&slashes != 0:
		return l.line(i)
	case c == '/' && after == '*':
		return l.comment(i)
	case c == '*' && after == '/' && l.inside > 0:
		l.inside--
		return i + 2
	case c == '\'':
		return l.quoted(i, aString, l.as&backslash != 0)
	case c == '"':
		return l.quoted(i, aQuoted, l.as&backslashInID != 0)
	case c == '`' && l.as&backtick != 0:
		return l.quoted(i, aQuoted, l.as&backslashInBT != 0)
	case c == '[' && l.as&brackets != 0:
		return l.bracketed(i)
	case c == '$':
		return l.dollar(i)
	case c >= utf8.RuneSelf:
		return l.foreign(i)
	case c < ' ' || c == '\\' || c == 0x7f:
		l.add(aDoubt, i, i+1)
	default:
		l.add(c, i, i+1)
	}
	return i + 1
}

// wordEnd returns the end of the word that begins at i, or goes on there.
func (l *lexer) wordEnd(i int) int {
	s := l.text
	for i < len(s) {
		c := s[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '_', c == '@', c == '$':
			i++
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if !letter(r) {
				return i
			}
			i += n
		default:
			return i
		}
	}
	return i
}

func letter(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

func (l *lexer) word(i int) int {
	end := l.wordEnd(i)
	if end < len(l.text) && l.text[end] == '\'' {
		switch word := l.text[i:end]; {
		case strings.EqualFold(word, "e") && l.as&escapeString != 0:
			return l.continued(end)
		case (strings.EqualFold(word, "q") || strings.EqualFold(word, "nq")) && l.as&oracleQuote != 0:
			return l.alternative(end)
		}
	}
	l.add(aWord, i, end)
	l.tokens[len(l.tokens)-1].class = classOf(l.words, l.text[i:end])
	return end
}

// number reads the digits of a number. What follows them at once is a word, for some
// databases take 1DROP as two.
func (l *lexer) number(i int) int {
	s, start := l.text, i
	digits := func(hex bool) {
		for i < len(s) && ('0' <= s[i] && s[i] <= '9' || hex && 'a' <= s[i]|0x20 && s[i]|0x20 <= 'f') {
			i++
		}
	}
	if s[i] == '0' && i+1 < len(s) && s[i+1]|0x20 == 'x' {
		i += 2
		digits(true)
	} else {
		digits(false)
		if i < len(s) && s[i] == '.' {
			i++
			digits(false)
		}
		if i < len(s) && s[i]|0x20 == 'e' {
			i++ // 1e is a number of SQL Server
			if i+1 < len(s) && (s[i] == '+' || s[i] == '-') && '0' <= s[i+1] && s[i+1] <= '9' {
				i++
			}
			digits(false)
		}
	}
	l.add(aNumber, start, i)
	if i < len(s) && l.wordEnd(i) > i && s[i-1]|0x20 >= 'a' {
		// 1execute, 0xdelete: with the last letters they are words, too.
		whole := i - 1
		for whole > start && s[whole-1]|0x20 >= 'a' {
			whole--
		}
		for ; whole < i; whole++ {
			l.word(whole)
		}
	}
	return i
}

// line skips a comment to the end of its line.
func (l *lexer) line(i int) int {
	end := len(l.text)
	if n := strings.IndexByte(l.text[i:], '\n'); n >= 0 {
		end = i + n
	}
	if l.as&endsAtReturn != 0 {
		if n := strings.IndexByte(l.text[i:end], '\r'); n >= 0 {
			end = i + n
		}
	}
	return end
}

// comment skips a comment, or enters one whose content is executed.
func (l *lexer) comment(i int) int {
	s := l.text
	if l.as&executable != 0 {
		if rest := s[i+2:]; strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "M!") {
			i += 2 + strings.IndexByte(rest, '!') + 1
			for n := 0; n < 6 && i < len(s) && '0' <= s[i] && s[i] <= '9'; n++ {
				i++
			}
			l.inside++
			return i
		}
	}
	if l.as&nested == 0 {
		if end := strings.Index(s[i+2:], "*/"); end >= 0 {
			return i + 2 + end + 2
		}
		return len(s)
	}
	depth := 1
	for i += 2; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "*/"):
			i += 2
			if depth--; depth == 0 {
				return i
			}
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i += 2
		default:
			i++
		}
	}
	return i
}

// quoted reads to the end of a quote, in which a quote that is doubled is part of it.
func (l *lexer) quoted(i int, kind byte, escapes bool) int {
	s, quote := l.text, l.text[i]
	if l.as&triple != 0 && quote != '`' && i+2 < len(s) && s[i+1] == quote && s[i+2] == quote {
		return l.tripled(i, kind)
	}
	for at := i + 1; at < len(s); at++ {
		if !escapes {
			n := strings.IndexByte(s[at:], quote)
			if n < 0 {
				break
			}
			at += n
		}
		switch {
		case escapes && s[at] == '\\':
			at++
		case s[at] == quote && at+1 < len(s) && s[at+1] == quote:
			at++
		case s[at] == quote:
			l.add(kind, i+1, at)
			return at + 1
		}
	}
	l.broken = true
	return len(s)
}

// continued reads PostgreSQL's E'…', which goes on with the next quote after the end of
// a line.
func (l *lexer) continued(i int) int {
	s := l.text
	for {
		i = l.quoted(i, aString, true)
		at, lines := i, false
		for at < len(s) && !l.broken {
			if strings.HasPrefix(s[at:], "--") {
				at = l.line(at)
				continue
			}
			if s[at] != ' ' && (s[at] < '\t' || s[at] > '\r') {
				break
			}
			lines = lines || s[at] == '\n' || s[at] == '\r'
			at++
		}
		if !lines || at >= len(s) || s[at] != '\'' {
			return i
		}
		i = at
	}
}

func (l *lexer) tripled(i int, kind byte) int {
	s, end := l.text, l.text[i:i+3]
	for at := i + 3; at < len(s); at++ {
		switch {
		case s[at] == '\\':
			at++
		case strings.HasPrefix(s[at:], end):
			l.add(kind, i+3, at)
			return at + 3
		}
	}
	l.broken = true
	return len(s)
}

func (l *lexer) bracketed(i int) int {
	s := l.text
	for at := i + 1; at < len(s); at++ {
		if s[at] == ']' {
			if at+1 < len(s) && s[at+1] == ']' {
				at++
				continue
			}
			l.add(aQuoted, i+1, at)
			return at + 1
		}
	}
	l.broken = true
	return len(s)
}

// alternative reads Oracle's q'[…]'; i is at the quote.
func (l *lexer) alternative(i int) int {
	if i+1 >= len(l.text) {
		l.broken = true
		return len(l.text)
	}
	close := l.text[i+1]
	if at := strings.IndexByte("[{(<", close); at >= 0 {
		close = "]})>"[at]
	}
	end := strings.Index(l.text[i+2:], string([]byte{close, '\''}))
	if end < 0 {
		l.broken = true
		return len(l.text)
	}
	l.add(aString, i+2, i+2+end)
	return i + 2 + end + 2
}

// dollar reads $tag$…$tag$, or else the $ as part of a word.
func (l *lexer) dollar(i int) int {
	s := l.text
	tag := i + 1
	if tag < len(s) && (s[tag] < '0' || s[tag] > '9') {
		for tag < len(s) && s[tag] != '$' && (s[tag] >= utf8.RuneSelf || s[tag] == '_' || 'a' <= s[tag]|0x20 && s[tag]|0x20 <= 'z' || '0' <= s[tag] && s[tag] <= '9') {
			tag++
		}
	}
	if l.as&dollar == 0 || tag >= len(s) || s[tag] != '$' {
		if end := l.wordEnd(i); end > i+1 {
			l.add(aWord, i, end)
			return end
		}
		l.add('$', i, i+1)
		return i + 1
	}
	mark := s[i : tag+1]
	end := strings.Index(s[tag+1:], mark)
	if end < 0 {
		l.broken = true
		return len(s)
	}
	l.add(aString, tag+1, tag+1+end)
	return tag + 1 + end + len(mark)
}

// foreign reads a character beyond ASCII: the beginning of a word, or a doubt, for it
// may be a blank to one database and part of a word to another.
func (l *lexer) foreign(i int) int {
	if end := l.wordEnd(i); end > i {
		l.add(aWord, i, end)
		return end
	}
	_, n := utf8.DecodeRuneInString(l.text[i:])
	l.add(aDoubt, i, i+n)
	return i + n
}
