package classify

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// dialectFlags is a bit set that describes how a database delimits quotes and comments.
type dialectFlags uint16

const (
	backslash       dialectFlags = 1 << iota // \ in '…' escapes
	backslashInID                            // the same in "…"
	backslashInBT                            // the same in `…`
	backtick                                 // `…` is a quote
	brackets                                 // […] is a quote
	dollar                                   // $tag$…$tag$ is a quote
	escapeString                             // E'…' has backslashes
	oracleQuote                              // q'[…]' is a quote
	triple                                   // '''…''' is a quote
	nested                                   // comments nest
	executable                               // /*! … */ is executed
	hash                                     // # starts a comment
	slashes                                  // // starts a comment
	dashesWithSpace                          // -- starts a comment only before a blank
	endsAtReturn                             // a carriage return ends a -- comment
)

// dialects are the known dialects. The worst verdict counts.
var dialects = [...]dialectFlags{
	0, // standard SQL: Oracle, Trino, Db2
	nested | dollar | escapeString | endsAtReturn,                              // PostgreSQL, DuckDB
	nested | dollar | escapeString | endsAtReturn | backslash,                  // without standard_conforming_strings
	backslash | backslashInID | hash | dashesWithSpace | executable | backtick, // MySQL, MariaDB
	backslash | backslashInID | hash | dashesWithSpace | backtick,              // versions before the one in the comment
	backslash | hash | dashesWithSpace | executable | backtick,                 // ANSI_QUOTES
	backslash | hash | dashesWithSpace | backtick,
	hash | dashesWithSpace | executable | backtick, // NO_BACKSLASH_ESCAPES
	hash | dashesWithSpace | backtick,
	brackets | backtick, // SQLite
	brackets | nested,   // SQL Server
	oracleQuote,
	backslash | backslashInID | hash | backtick | backslashInBT | triple, // BigQuery
	backslash | dollar | slashes,                                         // Snowflake
	backslash | backslashInID | backtick | backslashInBT | dollar,        // ClickHouse, Spark; shifts covers other differences
	backslash | backslashInID | backtick | backslashInBT | dollar | hash,
}

// shifts are the bits by which dialects can parse a text differently: one dialect skips text that another one parses,
// and a quote inside hides the end. Databases combine these bits in more ways than the listed dialects. Therefore a text in which such a
// part is not self-contained (see isSelfContained) is never a read.
const shifts = backtick | brackets | dollar | oracleQuote | nested | executable | hash | slashes | dashesWithSpace

// dialectSet is a bit set of dialects, in their order.
type dialectSet uint16

// first returns the first dialect of a non-empty set.
func (d dialectSet) first() int { return bits.TrailingZeros16(uint16(d)) }

// agreeingWith returns the dialects that have the same values of these bits as a dialect.
func (d dialectSet) agreeingWith(as, bits dialectFlags) (same dialectSet) {
	for rest := d; rest != 0; rest &= rest - 1 {
		if i := rest.first(); (dialects[i]^as)&bits == 0 {
			same |= 1 << i
		}
	}
	return same
}

// The kinds of tokens other than single characters, which are their own kind.
const (
	aWord   = 'a'
	aQuoted = '"' // a quoted identifier, or a token that may be one
	aString = '\''
	aNumber = '0'
	aDoubt  = 1 // a character that is invalid outside of quotes
)

type sqlToken struct {
	kind       byte
	class      wordClass // class of a word
	start, end int32     // position of a word, or of the content of quotes
}

// sqlLexer splits a text into the tokens of one statement after the other. All dialects start together, split where
// they differ, and join again at a common start of a statement. Text that they read in the same way is therefore read
// once.
type sqlLexer struct {
	text          string
	words         *wordTable
	wanted        dialectSet   // the dialects still needed
	dialectBranch              // the current dialects
	as            dialectFlags // flags of the first current dialect
	tokens        []sqlToken   // tokens of the statement
	shifty        bool         // dialects may be out of step
	// Positions still to read: where dialects split within the current statement, and where statements
	// start.
	parted, starts []dialectBranch
}

// dialectBranch is a set of dialects with their position.
type dialectBranch struct {
	dialects dialectSet
	at       int
	kept     int  // number of preceding tokens of the statement
	inside   int  // depth of executable comments
	broken   bool // an unterminated quote or comment, which no database accepts
	refused  bool // a backtick, which these dialects reject
}

func (l *sqlLexer) addToken(kind byte, start, end int) {
	l.tokens = append(l.tokens, sqlToken{kind: kind, start: int32(start), end: int32(end)})
}

// reset prepares the lexer for a text in these dialects.
func (l *sqlLexer) reset(text string, as dialectSet) {
	*l = sqlLexer{text: text, words: sqlWords(), wanted: as, tokens: l.tokens, parted: l.parted[:0], starts: append(l.starts[:0], dialectBranch{dialects: as})}
}

// nextStatement reads one statement in the first dialect and all that agree. It reports whether there was one.
func (l *sqlLexer) nextStatement() bool {
	for l.dialects = 0; l.dialects == 0; l.dialects &= l.wanted {
		from := &l.parted
		if len(l.parted) == 0 {
			from = &l.starts
		}
		if len(*from) == 0 {
			return false
		}
		last := len(*from) - 1
		l.dialectBranch, *from = (*from)[last], (*from)[:last]
	}
	l.as, l.tokens = dialects[l.dialects.first()], l.tokens[:l.kept]
	for l.at < len(l.text) {
		at, c := l.at, l.text[l.at]
		if isBlank(c) {
			l.at++
			continue
		}
		if c == ';' {
			l.at++
			break
		}
		if !asks[c] {
			l.at = l.readToken(at)
			continue
		}
		before := l.dialectBranch
		before.at, before.kept = at, len(l.tokens)
		l.at = l.readToken(at)
		if asked := l.relevantFlags(at, l.at); asked != 0 {
			if same := l.dialects.agreeingWith(l.as, asked); same != l.dialects {
				l.shifty = l.shifty || asked&shifts != 0 && !isSelfContained(l.text[at:])
				before.dialects &^= same
				l.parted, l.dialects = append(l.parted, before), same
			}
		}
	}
	if l.at < len(l.text) {
		l.queueStatement(dialectBranch{dialects: l.dialects, at: l.at, inside: l.inside})
	}
	return true
}

// queueStatement continues dialects at the next statement, those furthest behind first, so that dialects at the
// same position join.
func (l *sqlLexer) queueStatement(p dialectBranch) {
	i, _ := slices.BinarySearchFunc(l.starts, p, func(a, b dialectBranch) int { return cmp.Or(b.at-a.at, b.inside-a.inside) })
	if i < len(l.starts) && l.starts[i].at == p.at && l.starts[i].inside == p.inside {
		l.starts[i].dialects |= p.dialects
		return
	}
	l.starts = slices.Insert(l.starts, i, p)
}

// asks is the set of characters that may start a token that dialects read differently.
var asks = func() (is [256]bool) {
	for _, c := range []byte("0123456789eEqQnN-#/'\"`[$") {
		is[c] = true
	}
	return is
}()

// relevantFlags returns the dialect bits that affect how the text from i to end was read. Dialects with the same
// values of these bits read it in the same way.
func (l *sqlLexer) relevantFlags(i, end int) (d dialectFlags) {
	s, read := l.text[i:], l.text[i:end]
	second, third := byte(0), byte(0)
	if len(s) > 1 {
		second = s[1]
	}
	if len(s) > 2 {
		third = s[2]
	}
	also := func(bit dialectFlags, matters bool) {
		if matters {
			d |= bit
		}
	}
	// A line comment, which ended at the character at end.
	returns := func() bool { return strings.IndexByte(l.text[i:min(end+1, len(l.text))], '\r') >= 0 }
	switch c := s[0]; {
	case '0' <= c && c <= '9':
		also(escapeString|oracleQuote|endsAtReturn|triple, len(s) > len(read) && s[len(read)] == '\'')
	case c|0x20 == 'e' && second == '\'':
		d = escapeString
		also(endsAtReturn|triple, len(read) > 1)
	case c|0x20 == 'q':
		also(oracleQuote, second == '\'')
	case c|0x20 == 'n':
		also(oracleQuote, second|0x20 == 'q' && third == '\'')
	case c == '-' && second == '-':
		also(dashesWithSpace, third > ' ')
		also(endsAtReturn, returns())
	case c == '#':
		d = hash
		also(endsAtReturn, returns())
	case c == '/' && second == '*':
		also(executable, third == '!' || third == 'M' || third == 'T')
		also(nested, strings.Contains(read[2:], "/*"))
	case c == '/' && second == '/':
		d = slashes
		also(endsAtReturn, returns())
	case c == '\'':
		also(triple, second == c && third == c)
		also(backslash, hasEscapedEnd(read))
	case c == '"':
		also(triple, second == c && third == c)
		also(backslashInID, hasEscapedEnd(read))
	case c == '`':
		d = backtick
		also(backslashInBT, hasEscapedEnd(read))
	case c == '[':
		return brackets
	case c == '$':
		also(dollar, dollarTagEnd(s) > 0)
	}
	return d
}

// hasEscapedEnd reports whether a backslash escape may change the end of a quote, because a backslash precedes a
// delimiter.
func hasEscapedEnd(quote string) bool {
	for i := 1; i < len(quote); i++ {
		n := strings.IndexByte(quote[i:], '\\')
		if n < 0 {
			break
		}
		if i += n + 1; i < len(quote) && quote[i] == quote[0] {
			return true
		}
	}
	return false
}

// skippedContent returns the content that some databases skip as a comment or quote at the start of a text. lines includes
// comments to the end of the line.
func skippedContent(s string) (inner string, lines bool) {
	open, end := 1, "\n"
	switch c := s[0]; {
	case c == '#':
		return textUpTo(s[1:], end), true
	case strings.HasPrefix(s, "--"), strings.HasPrefix(s, "//"):
		return textUpTo(s[2:], end), true
	case c == '`':
		end = "`"
	case c == '[':
		end = "]"
	case c == '$':
		open = dollarTagEnd(s)
		end = s[:open]
	case c == '/': // the extra part of nested comments
		return nestedRemainder(s), false
	default: // q'[…]'
		open = strings.IndexByte(s, '\'') + 1
		delimiter, n := utf8.DecodeRuneInString(s[open:])
		open, end = open+n, closingDelimiter(delimiter)+"'"
		if inner := textUpTo(s[open:], end); strings.IndexByte(inner, '\'') >= 0 {
			return inner + "'", false
		}
		return "", false
	}
	return textUpTo(s[open:], end), false
}

// nestedRemainder returns the part of a comment that belongs to it only if comments nest.
func nestedRemainder(s string) string {
	first := strings.Index(s[2:], "*/") + 4
	for i, depth := 0, 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s[i:], "*/"):
			i++
			if depth--; depth == 0 {
				return s[min(first, i-1) : i-1]
			}
		}
	}
	return ""
}

// closingDelimiter returns the end of an Oracle quote.
func closingDelimiter(open rune) string {
	if at := strings.IndexRune("[{(<", open); at >= 0 {
		return "]})>"[at : at+1]
	}
	return string(open)
}

// textUpTo returns the text up to end. It returns "" if end is missing, because no database with this syntax accepts
// such a text.
func textUpTo(s, end string) string {
	i := strings.Index(s, end)
	if i < 0 && end == "\n" {
		i = len(s)
	}
	return s[:max(i, 0)]
}

// isSelfContained reports whether a part that some databases skip is self-contained: no quote or comment that starts
// in it continues after it.
func isSelfContained(s string) bool {
	inner, lines := skippedContent(s)
	for i := 0; i < len(inner); i++ {
		c, rest := inner[i], inner[i+1:]
		end := c
		switch c {
		case '\'', '"', '`':
		case '[':
			if end = ']'; s[0] == '[' {
				continue
			}
		case '#', '-', '/', '\r', '$':
			twice := strings.HasPrefix(rest, string(c))
			if !lines && (c == '#' || c != '$' && twice) || c == '/' && strings.HasPrefix(rest, "*") ||
				c == '\r' && rest != "" || c == '$' && dollarTagEnd(inner[i:]) > 0 {
				return false
			}
			continue
		default:
			continue
		}
		n := strings.IndexByte(rest, end)
		if n < 0 || strings.IndexByte(rest[:n], '\\') >= 0 {
			return false
		}
		i += n + 1
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// readToken reads the token at i, and returns its end.
func (l *sqlLexer) readToken(i int) int {
	s := l.text
	c := s[i]
	after := byte(0)
	if i+1 < len(s) {
		after = s[i+1]
	}
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '@':
		return l.readWord(i)
	case '0' <= c && c <= '9':
		return l.readNumber(i)
	case c == '-' && after == '-' && (l.as&dashesWithSpace == 0 || i+2 >= len(s) || s[i+2] <= ' '),
		c == '#' && l.as&hash != 0, c == '/' && after == '/' && l.as&slashes != 0:
		return l.skipLineComment(i)
	case c == '/' && after == '*':
		return l.skipComment(i)
	case c == '*' && after == '/' && l.inside > 0:
		l.inside--
		return i + 2
	case c == '\'':
		return l.readQuoted(i, aString, l.as&backslash != 0)
	case c == '"':
		return l.readQuoted(i, aQuoted, l.as&backslashInID != 0)
	case c == '`' && l.as&backtick != 0:
		return l.readQuoted(i, aQuoted, l.as&backslashInBT != 0)
	case c == '[' && l.as&brackets != 0:
		return l.readBracketed(i)
	case c == '$':
		return l.readDollar(i)
	case c >= utf8.RuneSelf:
		return l.readNonASCII(i)
	case c == '\\' && after != 0 && strings.IndexByte("'\"`\\%_", after) >= 0:
		l.broken = true // it is not a client command of a database, either
	case c < ' ' || c == '\\' || c == 0x7f:
		l.addToken(aDoubt, i, i+1)
	default:
		l.refused = l.refused || c == '`'
		l.addToken(c, i, i+1)
	}
	return i + 1
}

// wordEnd returns the end of the word at i.
func (l *sqlLexer) wordEnd(i int) int {
	for i < len(l.text) {
		switch c := l.text[i]; {
		case letters[c] != 0:
			i++
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.text[i:])
			if !isWordRune(r) {
				return i
			}
			i += n
		default:
			return i
		}
	}
	return i
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

func (l *sqlLexer) readWord(i int) int {
	hash, end := hashWord(l.text, i)
	word := l.text[i:end]
	if end < len(l.text) {
		switch next := l.text[end]; {
		case next == '\'' && strings.EqualFold(word, "e") && l.as&escapeString != 0:
			return l.readEscapeString(end)
		case next == '\'' && (strings.EqualFold(word, "q") || strings.EqualFold(word, "nq")) && l.as&oracleQuote != 0:
			return l.readOracleQuote(end)
		case next == '\'' || next == '"':
			l.shifty = l.shifty || word[len(word)-1]|0x20 == 'r' && len(word) <= 2 && isAmbiguousRawString(l.text[end:])
		case next >= utf8.RuneSelf:
			if whole := l.wordEnd(end); whole > end {
				l.readNonASCIIWord(i, whole)
				return whole
			}
		}
	}
	l.tokens = append(l.tokens, sqlToken{aWord, l.words.lookUp(word, hash), int32(i), int32(end)})
	return end
}

// isAmbiguousRawString reports whether the end of a raw string is ambiguous. A quote after a backslash ends it in
// Spark but not in BigQuery.
func isAmbiguousRawString(s string) bool {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	inner, _, _ := strings.Cut(s[len(quote):], quote)
	return strings.HasSuffix(inner, `\`) || len(quote) == 3 && strings.Contains(inner, `\`+s[:1])
}

// readNonASCIIWord reads a non-ASCII word. It is doubtful if it is a keyword in which ı, ſ or K replaces i, s or k,
// because some databases accept these. Otherwise it is an unknown word.
func (l *sqlLexer) readNonASCIIWord(i, end int) {
	folded := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, strings.ReplaceAll(l.text[i:end], "\u212a", "k"))
	if hash, whole := hashWord(folded, 0); whole == len(folded) && l.words.lookUp(folded, hash) != 0 {
		l.addToken(aDoubt, i, end)
		return
	}
	l.addToken(aWord, i, end)
}

// readNumber reads a number. A word may follow directly: some databases read 1DROP as two tokens.
func (l *sqlLexer) readNumber(i int) int {
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
			i++ // 1e is a number in SQL Server
			if i+1 < len(s) && (s[i] == '+' || s[i] == '-') && '0' <= s[i+1] && s[i+1] <= '9' {
				i++
			}
			digits(false)
		}
	}
	l.addToken(aNumber, start, i)
	if i < len(s) && l.wordEnd(i) > i && s[i-1]|0x20 >= 'a' {
		// 1execute, 0xdelete: together with the last letters of the number, the text after it is also read as a word.
		whole := i - 1
		for whole > start && s[whole-1]|0x20 >= 'a' {
			whole--
		}
		for ; whole < i; whole++ {
			l.readWord(whole)
		}
	}
	return i
}

// skipLineComment skips a comment to the end of its line. The end is ambiguous after a carriage return, or after a
// backslash, because Spark then continues the comment on the next line.
func (l *sqlLexer) skipLineComment(i int) int {
	end := len(l.text)
	if n := strings.IndexByte(l.text[i:], '\n'); n >= 0 {
		end = i + n
		comment := strings.TrimSuffix(l.text[i:end], "\r")
		l.shifty = l.shifty || strings.IndexByte(comment, '\r') >= 0 || strings.HasSuffix(comment, `\`)
	}
	if l.as&endsAtReturn != 0 {
		if n := strings.IndexByte(l.text[i:end], '\r'); n >= 0 {
			end = i + n
		}
	}
	return end
}

// skipComment skips a comment, or enters an executable one.
func (l *sqlLexer) skipComment(i int) int {
	s := l.text
	if rest := s[i+2:]; strings.HasPrefix(rest, "!") || len(rest) > 1 && rest[1] == '!' {
		l.shifty = true // whether the comment is executed depends on the database and version
	}
	if l.as&executable != 0 {
		if rest := s[i+2:]; strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "M!") || strings.HasPrefix(rest, "T!") {
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
		l.broken = true
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
	l.broken = true
	return i
}

// readQuoted reads to the end of a quote, which may contain doubled quotes.
func (l *sqlLexer) readQuoted(i int, kind byte, escapes bool) int {
	s, quote := l.text, l.text[i]
	if l.as&triple != 0 && quote != '`' && i+2 < len(s) && s[i+1] == quote && s[i+2] == quote {
		return l.readTripleQuoted(i, kind)
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
			// In some East Asian character sets the previous byte may combine with the backslash.
			l.shifty = l.shifty || s[at-1] >= utf8.RuneSelf && at+1 < len(s) && (s[at+1] == quote || s[at+1] == '\\')
			at++
		case s[at] == quote && at+1 < len(s) && s[at+1] == quote:
			at++
		case s[at] == quote:
			l.addToken(kind, i+1, at)
			return at + 1
		}
	}
	l.broken = true
	return len(s)
}

// readEscapeString reads PostgreSQL's E'…', which continues with a quote on the next line.
func (l *sqlLexer) readEscapeString(i int) int {
	s := l.text
	for {
		i = l.readQuoted(i, aString, true)
		at, lines := i, false
		for at < len(s) && !l.broken {
			if strings.HasPrefix(s[at:], "--") {
				at = l.skipLineComment(at)
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

func (l *sqlLexer) readTripleQuoted(i int, kind byte) int {
	s, end := l.text, l.text[i:i+3]
	for at := i + 3; at < len(s); at++ {
		switch {
		case s[at] == '\\':
			at++
		case strings.HasPrefix(s[at:], end):
			l.addToken(kind, i+3, at)
			return at + 3
		}
	}
	l.broken = true
	return len(s)
}

func (l *sqlLexer) readBracketed(i int) int {
	s := l.text
	for at := i + 1; at < len(s); at++ {
		if s[at] == ']' {
			if at+1 < len(s) && s[at+1] == ']' {
				at++
				continue
			}
			l.addToken(aQuoted, i+1, at)
			return at + 1
		}
	}
	l.broken = true
	return len(s)
}

// readOracleQuote reads Oracle's q'[…]'; i is at the quote.
func (l *sqlLexer) readOracleQuote(i int) int {
	open, n := utf8.DecodeRuneInString(l.text[i+1:])
	end := closingDelimiter(open)
	inner, _, found := strings.Cut(l.text[i+1+n:], end+"'")
	if !found || n == 0 {
		l.broken = true
		return len(l.text)
	}
	i += 1 + n
	l.addToken(aString, i, i+len(inner))
	return i + len(inner) + len(end) + 1
}

// dollarTagEnd returns the end of the $tag$ at the start of a text, 0 if there is none.
func dollarTagEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] < '0' || s[i] > '9') {
		for i < len(s) && s[i] != '$' && (s[i] >= utf8.RuneSelf || s[i] != '@' && letters[s[i]] != 0) {
			i++
		}
	}
	if i == len(s) || s[i] != '$' {
		return 0
	}
	return i + 1
}

// readDollar reads $tag$…$tag$, or the $ as part of a word.
func (l *sqlLexer) readDollar(i int) int {
	tag := dollarTagEnd(l.text[i:])
	if l.as&dollar == 0 || tag == 0 {
		if end := l.wordEnd(i); end > i+1 {
			l.addToken(aWord, i, end)
			return end
		}
		if strings.HasPrefix(l.text[i:], "${") { // Hive and Spark substitute variables
			l.addToken(aDoubt, i, i+1)
			return i + 1
		}
		l.addToken('$', i, i+1)
		return i + 1
	}
	i += tag
	end := strings.Index(l.text[i:], l.text[i-tag:i])
	if end < 0 {
		l.broken = true
		return len(l.text)
	}
	l.addToken(aString, i, i+end)
	return i + end + tag
}

// readNonASCII reads a non-ASCII character: the start of a word, or a doubtful token, because some databases treat
// the character as a space.
func (l *sqlLexer) readNonASCII(i int) int {
	if end := l.wordEnd(i); end > i {
		l.readNonASCIIWord(i, end)
		return end
	}
	_, n := utf8.DecodeRuneInString(l.text[i:])
	l.addToken(aDoubt, i, i+n)
	return i + n
}
